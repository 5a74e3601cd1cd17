"""Plans of steps on disk, for later processes."""
