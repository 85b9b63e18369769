"""What GPU backends share: kernels in upstream dialects, their schedules, launches and manifest."""
