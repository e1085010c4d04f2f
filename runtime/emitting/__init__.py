"""Steps as the text of Python source."""
