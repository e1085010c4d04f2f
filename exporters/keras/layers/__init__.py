"""Rules for layers whose ``call`` is not followed: it asks for sizes, loops, or is not written in ``keras.ops``."""
