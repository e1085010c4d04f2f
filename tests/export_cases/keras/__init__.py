"""Keras: every class of layers in several configurations, whole models, and the applications.

``layers`` files hold one table each: a class, what is unusual about the configuration, the layer, its inputs.
"""
