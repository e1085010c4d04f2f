"""The list of scikit-learn models; importing it does not import scikit-learn."""

from __future__ import annotations

from entrepot.models_zoo.registry import Entry

CATALOGUE = (
    Entry("churn", "tabular", "tables", "Numbers with gaps and words, imputed, scaled, encoded, classified."),
    Entry("digits_svm", "image-classification", "tables", "Principal components of digits, support vectors."),
    Entry("stacked_regressors", "tabular", "tables", "A ridge regression and a forest, stacked."),
    Entry("outliers", "anomaly-detection", "tables", "An isolation forest on scaled measurements."),
    Entry("topic_classifier", "text-classification", "texts", "Words and pairs of words, weighed, classified."),
    Entry("xgboost_classifier", "tabular", "boosters", "XGBoost's classifier of three classes, with missing values."),
    Entry("lightgbm_categories", "tabular", "boosters", "LightGBM's regressor with a categorical column."),
    Entry("histogram_boosting", "tabular", "boosters", "scikit-learn's own boosting, with categories and gaps."),
)
