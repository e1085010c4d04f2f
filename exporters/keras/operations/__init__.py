"""Rules for the operations of ``keras.ops``, by the names of their classes."""
