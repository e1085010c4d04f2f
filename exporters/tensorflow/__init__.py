"""TensorFlow: functions, modules, SavedModels, graphs and TensorFlow Lite."""
