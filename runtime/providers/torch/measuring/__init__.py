"""Which of several ways to compute the same is fastest on this machine: measured where a user asks for it, and kept."""
