// Positions of the labels of a plot: each where it overlaps least with points, lines and other labels.
const LETTER = 6.4;
const LINE = 15;
const AWAY = 10;

/** Plotly's name of a position, and the label's box [left, top, width, height] in pixels from the point. */
const POSITIONS = [
  ["middle right", (width) => [AWAY, -LINE / 2, width, LINE]],
  ["middle left", (width) => [-AWAY - width, -LINE / 2, width, LINE]],
  ["top center", (width) => [-width / 2, -AWAY - LINE, width, LINE]],
  ["bottom center", (width) => [-width / 2, AWAY, width, LINE]],
  ["top right", (width) => [AWAY / 2, -AWAY - LINE, width, LINE]],
  ["top left", (width) => [-AWAY / 2 - width, -AWAY - LINE, width, LINE]],
  ["bottom right", (width) => [AWAY / 2, AWAY, width, LINE]],
  ["bottom left", (width) => [-AWAY / 2 - width, AWAY, width, LINE]],
];

/** Points are [x, y, text] in pixels; `taken` are boxes [left, top, width, height] that labels should avoid. */
function placeLabels(points, taken, width, height) {
  const boxes = [...taken, ...points.map(([x, y]) => [x - 6, y - 6, 12, 12])];
  return points.map(([x, y, text]) => {
    const tries = POSITIONS.map(([position, around]) => {
      const [left, top, wide, high] = around(text.length * LETTER);
      return { position, box: [x + left, y + top, wide, high] };
    });
    const best = tries.reduce((one, other) =>
      covered(other.box, boxes, width, height) < covered(one.box, boxes, width, height) ? other : one,
    );
    boxes.push(best.box);
    return best.position;
  });
}

/** Pixels that a label would overlap; those outside the plot count twenty times. */
function covered(box, boxes, width, height) {
  const [left, top, wide, high] = box;
  const inside = overlap(box, [0, 0, width, height]);
  return 20 * (wide * high - inside) + boxes.reduce((sum, other) => sum + overlap(box, other), 0);
}

function overlap([left, top, wide, high], [otherLeft, otherTop, otherWide, otherHigh]) {
  const across = Math.min(left + wide, otherLeft + otherWide) - Math.max(left, otherLeft);
  const down = Math.min(top + high, otherTop + otherHigh) - Math.max(top, otherTop);
  return across > 0 && down > 0 ? across * down : 0;
}

/** Small boxes along a line through points [x, y]. */
function along(points) {
  const steps = 12;
  return points.slice(1).flatMap(([x, y], number) => {
    const [fromX, fromY] = points[number];
    return Array.from({ length: steps }, (_, step) => {
      const part = (step + 0.5) / steps;
      return [fromX + (x - fromX) * part - 2, fromY + (y - fromY) * part - 2, 4, 4];
    });
  });
}
