"""What a file has beside its modules: functions of ours, and kernels with all that they call."""
