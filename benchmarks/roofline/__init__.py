"""Every family of operations by dtype and kind of shape, beside a copy of as many bytes."""
