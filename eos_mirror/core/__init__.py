"""Pure decisions and codecs: no network, thread, clock or third-party library."""
