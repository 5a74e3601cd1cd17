"""The link between a device and its host: how long a copy takes, apart for both directions."""

from __future__ import annotations

from dataclasses import dataclass

from autockpt.cost_models import DeviceProfile


@dataclass(frozen=True, slots=True)
class HostLink:
    out_bytes_per_second: float
    in_bytes_per_second: float
    latency_seconds: float

    @classmethod
    def of(cls, device: DeviceProfile | None) -> HostLink | None:
        """None where the profile has no link, or the device is not known: nothing is offloaded then."""
        if device is None or not (device.device_to_host_bytes_per_second and device.host_to_device_bytes_per_second):
            return None
        return cls(
            device.device_to_host_bytes_per_second, device.host_to_device_bytes_per_second, device.copy_latency_seconds
        )

    def out_seconds(self, nbytes: int) -> float:
        return self.latency_seconds + nbytes / self.out_bytes_per_second

    def in_seconds(self, nbytes: int) -> float:
        return self.latency_seconds + nbytes / self.in_bytes_per_second
