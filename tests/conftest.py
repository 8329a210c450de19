"""Settings shared by all tests: a quiet TensorFlow, and repeatable examples."""

import os
import signal

# A run in the background of a shell ignores Ctrl-C, and so would the processes tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before anything imports TensorFlow

from hypothesis import HealthCheck, settings

# "repeatable" draws the same examples in every run; "explore" draws new ones:
#   pytest --hypothesis-profile=explore [--hypothesis-seed=N]
settings.register_profile(
    "explore", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("repeatable", settings.get_profile("explore"), derandomize=True)
settings.load_profile("repeatable")
