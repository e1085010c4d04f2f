"""How estimators are made that need an argument, other data, or have more to show than their defaults do."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import (
    decomposition,
    ensemble,
    gaussian_process,
    linear_model,
    preprocessing,
    svm,
    tree,
)

from tests.export_cases.sklearn import data

LOGISTIC = linear_model.LogisticRegression()
FOREST = ensemble.RandomForestClassifier(5, random_state=0, max_depth=3)
RIDGE = linear_model.Ridge()
STUMP = tree.DecisionTreeRegressor(max_depth=3)
KERNELS = gaussian_process.kernels

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "AdaBoostClassifier": [
        {"n_estimators": 5},
        {"n_estimators": 4, "estimator": tree.DecisionTreeClassifier(max_depth=2)},
    ],
    "AdaBoostRegressor": [{"n_estimators": 5}, {"n_estimators": 6, "loss": "exponential"}],
    "AdditiveChi2Sampler": [{}, {"sample_steps": 3}],
    "BaggingClassifier": [{"n_estimators": 4}, {"estimator": svm.LinearSVC(), "n_estimators": 3, "max_features": 0.6}],
    "BaggingRegressor": [{"n_estimators": 4}, {"estimator": RIDGE, "n_estimators": 3, "max_features": 0.6}],
    "BayesianGaussianMixture": [{"n_components": 2}, {"n_components": 3, "covariance_type": "diag"}],
    "BernoulliNB": [{}, {"binarize": 0.5, "fit_prior": False}],
    "BisectingKMeans": [{"n_clusters": 3}, {"n_clusters": 5, "bisecting_strategy": "largest_cluster"}],
    "Birch": [{}, {"n_clusters": 4, "threshold": 0.8}],
    "CalibratedClassifierCV": [{}, {"estimator": FOREST, "method": "isotonic", "cv": 3}],
    "CCA": [{"n_components": 1}, {"n_components": 2}],
    "ClassifierChain": [
        {"estimator": LOGISTIC},
        {"estimator": FOREST, "order": [2, 0, 1], "chain_method": "predict_proba"},
    ],
    "ColumnTransformer": [
        {"transformers": [("scaled", preprocessing.StandardScaler(), [0, 2]), ("rest", "passthrough", [1])]},
        {"transformers": [("bins", preprocessing.KBinsDiscretizer(3), [1, 3])], "remainder": "passthrough"},
    ],
    "CountVectorizer": [{}, {"binary": True, "ngram_range": (1, 2)}],
    "DictionaryLearning": [{"max_iter": 3}, {"transform_algorithm": "threshold", "max_iter": 3}],
    "DummyClassifier": [{}, {"strategy": "most_frequent"}],
    "DummyRegressor": [{}, {"strategy": "quantile", "quantile": 0.3}],
    "ElasticNet": [{}, {"positive": True}],
    "EllipticEnvelope": [{}, {"contamination": 0.2}],
    "ExtraTreesClassifier": [{"n_estimators": 5}, {"n_estimators": 3, "max_depth": 4}],
    "ExtraTreesRegressor": [{"n_estimators": 5}, {"n_estimators": 3, "max_depth": 4}],
    "FactorAnalysis": [{"n_components": 2}, {"rotation": "varimax", "n_components": 3}],
    "FastICA": [{"n_components": 3}, {"whiten": "arbitrary-variance"}],
    "FeatureAgglomeration": [{"n_clusters": 3}, {"n_clusters": 2, "pooling_func": np.max}],
    "FeatureUnion": [
        {"transformer_list": [("a", preprocessing.StandardScaler()), ("b", decomposition.PCA(2))]},
        {"transformer_list": [("a", preprocessing.MinMaxScaler()), ("b", "drop"), ("c", "passthrough")],
         "transformer_weights": {"a": 2.0}},
    ],
    "FixedThresholdClassifier": [{"estimator": LOGISTIC}, {"estimator": LOGISTIC, "threshold": 0.7, "pos_label": 0}],
    "FrozenEstimator": [],
    "FunctionTransformer": [{"func": np.log1p}, {"func": lambda x: np.hstack([x, np.sqrt(x[:, :2] ** 2 + 1)])}],
    "GaussianMixture": [{"n_components": 3}, {"n_components": 2, "covariance_type": "tied"}],
    "GaussianProcessClassifier": [{}, {"kernel": 1.5 * KERNELS.Matern(nu=1.5)}],
    "GaussianProcessRegressor": [
        {"alpha": 0.1, "optimizer": None},
        {"kernel": KERNELS.DotProduct() + KERNELS.RationalQuadratic() * KERNELS.ConstantKernel(2.0)
         + KERNELS.WhiteKernel(),
         "normalize_y": True},
    ],
    "GaussianRandomProjection": [{"n_components": 3}],
    "GenericUnivariateSelect": [{"mode": "k_best", "param": 3}],
    "GradientBoostingClassifier": [{"n_estimators": 6}, {"n_estimators": 5, "init": FOREST, "max_depth": 2}],
    "GradientBoostingRegressor": [{"n_estimators": 6}, {"n_estimators": 5, "loss": "huber", "init": RIDGE}],
    "GridSearchCV": [
        {"estimator": LOGISTIC, "param_grid": {"C": [0.1, 1.0]}},
        {"estimator": svm.SVC(), "param_grid": {"kernel": ["linear", "rbf"]}},
    ],
    "HistGradientBoostingClassifier": [{"max_iter": 6}, {"max_iter": 5, "categorical_features": [0, 2]}],
    "HistGradientBoostingRegressor": [{"max_iter": 6}, {"max_iter": 5, "loss": "poisson", "categorical_features": [1]}],
    "IncrementalPCA": [{"n_components": 2}, {"n_components": 3, "whiten": True}],
    "IsolationForest": [{"n_estimators": 8}, {"n_estimators": 6, "max_features": 0.6, "contamination": 0.1}],
    "Isomap": [{}, {"n_neighbors": 8, "n_components": 3}],
    "IsotonicRegression": [{"out_of_bounds": "clip"}, {"increasing": False}],
    "IterativeImputer": [{"max_iter": 3}, {"estimator": STUMP, "max_iter": 2}],
    "KBinsDiscretizer": [{"n_bins": 4}, {"n_bins": 3, "encode": "ordinal", "strategy": "uniform"}],
    "KernelDensity": [{}, {"kernel": "epanechnikov", "bandwidth": 4.0}],
    "KernelPCA": [{"n_components": 2}, {"n_components": 3, "kernel": "rbf"}],
    "KernelRidge": [{}, {"kernel": "laplacian", "gamma": 0.1}],
    "KMeans": [{"n_clusters": 3}, {"n_clusters": 5, "init": "random"}],
    "KNeighborsClassifier": [{}, {"weights": "distance", "n_neighbors": 3, "p": 1}],
    "KNeighborsRegressor": [{}, {"weights": "distance", "metric": "chebyshev"}],
    "KNeighborsTransformer": [{}, {"mode": "connectivity", "n_neighbors": 3}],
    "KNNImputer": [{}, {"weights": "distance", "n_neighbors": 3, "add_indicator": True}],
    "LabelPropagation": [{"gamma": 0.2}, {"kernel": "knn"}],
    "LabelSpreading": [{"gamma": 0.2}, {"kernel": "knn"}],
    "LinearDiscriminantAnalysis": [{}, {"solver": "eigen", "shrinkage": "auto"}],
    "LocallyLinearEmbedding": [{}, {"n_neighbors": 7, "n_components": 3}],
    "LocalOutlierFactor": [{"novelty": True}, {"novelty": True, "n_neighbors": 5, "contamination": 0.1}],
    "LogisticRegression": [{}, {"l1_ratio": 1.0, "solver": "liblinear"}],
    "MiniBatchDictionaryLearning": [{"max_iter": 3}, {"transform_algorithm": "threshold", "max_iter": 3}],
    "MiniBatchKMeans": [{"n_clusters": 3}, {"n_clusters": 4, "batch_size": 20}],
    "MiniBatchNMF": [{"n_components": 2}, {"n_components": 3}],
    "MissingIndicator": [{}, {"features": "all"}],
    "MLPClassifier": [{"max_iter": 20}, {"max_iter": 20, "hidden_layer_sizes": (8, 6), "activation": "tanh"}],
    "MLPRegressor": [{"max_iter": 20}, {"max_iter": 20, "activation": "logistic"}],
    "MultiOutputClassifier": [{"estimator": LOGISTIC}, {"estimator": FOREST}],
    "MultiOutputRegressor": [{"estimator": RIDGE}, {"estimator": STUMP}],
    "NearestCentroid": [{}, {"metric": "manhattan"}],
    "NMF": [{"n_components": 2}, {"n_components": 3, "alpha_W": 0.01}],
    "Normalizer": [{}, {"norm": "l1"}],
    "Nystroem": [{"n_components": 10}, {"n_components": 8, "kernel": "poly", "degree": 2, "gamma": 0.1}],
    "NuSVC": [{}, {"probability": True, "nu": 0.3}],
    "OneClassSVM": [{}, {"kernel": "poly", "nu": 0.3}],
    "OneHotEncoder": [{}, {"drop": "if_binary", "min_frequency": 15, "handle_unknown": "infrequent_if_exist"}],
    "OneVsOneClassifier": [{"estimator": LOGISTIC}, {"estimator": FOREST}],
    "OneVsRestClassifier": [{"estimator": LOGISTIC}, {"estimator": FOREST}],
    "OrdinalEncoder": [{}, {"handle_unknown": "use_encoded_value", "unknown_value": np.nan}],
    "OutputCodeClassifier": [{"estimator": LOGISTIC, "random_state": 0}, {"estimator": FOREST, "random_state": 1}],
    "PCA": [{"n_components": 3}, {"n_components": 2, "whiten": True}],
    "Pipeline": [
        {"steps": [("scale", preprocessing.StandardScaler()), ("model", LOGISTIC)]},
        {"steps": [("pca", decomposition.PCA(3)), ("none", "passthrough"), ("model", FOREST)]},
    ],
    "PLSCanonical": [{"n_components": 1}, {"n_components": 2}],
    "PLSRegression": [{"n_components": 2}, {"n_components": 1, "scale": False}],
    "PLSSVD": [{"n_components": 1}, {"n_components": 2}],
    "PolynomialCountSketch": [{"n_components": 10}, {"n_components": 12, "degree": 3, "coef0": 1}],
    "PolynomialFeatures": [{}, {"degree": 3, "interaction_only": True, "include_bias": False}],
    "PowerTransformer": [{}, {"method": "box-cox", "standardize": False}],
    "QuadraticDiscriminantAnalysis": [{}, {"reg_param": 0.2}],
    "QuantileTransformer": [{"n_quantiles": 20}, {"n_quantiles": 15, "output_distribution": "normal"}],
    "RadiusNeighborsClassifier": [
        {"radius": 9.0},
        {"radius": 3.0, "weights": "distance", "outlier_label": "most_frequent"},
    ],
    "RadiusNeighborsRegressor": [{"radius": 9.0}, {"radius": 3.0, "weights": "distance"}],
    "RadiusNeighborsTransformer": [{"radius": 3.0}, {"radius": 4.0, "mode": "connectivity"}],
    "RandomForestClassifier": [{"n_estimators": 5}, {"n_estimators": 3, "max_depth": 4}],
    "RandomForestRegressor": [{"n_estimators": 5}, {"n_estimators": 3, "max_depth": 4}],
    "RandomizedSearchCV": [{"estimator": RIDGE, "param_distributions": {"alpha": [0.1, 1.0]}, "n_iter": 2}],
    "RandomTreesEmbedding": [{"n_estimators": 4}, {"n_estimators": 3, "max_depth": 3}],
    "RBFSampler": [{"n_components": 12}, {"gamma": "scale", "n_components": 8}],
    "RegressorChain": [{"estimator": RIDGE}, {"estimator": STUMP, "order": [1, 0]}],
    "RFE": [{"estimator": LOGISTIC, "n_features_to_select": 3}, {"estimator": FOREST}],
    "RFECV": [{"estimator": LOGISTIC}],
    "RobustScaler": [{}, {"unit_variance": True, "with_centering": False}],
    "SelectFromModel": [{"estimator": LOGISTIC}, {"estimator": FOREST, "threshold": "median"}],
    "SelectKBest": [{"k": 3}],
    "SelfTrainingClassifier": [{"estimator": LOGISTIC}, {"estimator": FOREST}],
    "SequentialFeatureSelector": [{"estimator": LOGISTIC, "n_features_to_select": 2, "cv": 2}],
    "SGDClassifier": [{"loss": "log_loss"}, {"loss": "modified_huber"}],
    "SimpleImputer": [{}, {"strategy": "median", "add_indicator": True}],
    "SkewedChi2Sampler": [{"n_components": 12}],
    "SparseCoder": [
        {"dictionary": np.linalg.qr(data.numbers()[:5])[0]},
        {"dictionary": data.numbers()[:5], "transform_algorithm": "threshold", "transform_alpha": 0.5},
    ],
    "SparseRandomProjection": [{"n_components": 3}, {"n_components": 4, "dense_output": True}],
    "SplineTransformer": [{}, {"degree": 2, "n_knots": 4, "extrapolation": "linear", "include_bias": False}],
    "StackingClassifier": [
        {"estimators": [("a", LOGISTIC), ("b", FOREST)], "cv": 3},
        {"estimators": [("a", svm.LinearSVC()), ("b", FOREST)], "final_estimator": FOREST, "passthrough": True,
         "cv": 3},
    ],
    "StackingRegressor": [
        {"estimators": [("a", RIDGE), ("b", STUMP)], "cv": 3},
        {"estimators": [("a", RIDGE), ("b", STUMP)], "final_estimator": STUMP, "passthrough": True, "cv": 3},
    ],
    "SVC": [{"probability": True}, {"kernel": "poly", "degree": 2, "decision_function_shape": "ovo"}],
    "SVR": [{}, {"kernel": "sigmoid", "gamma": 0.01}],
    "TargetEncoder": [{}, {"smooth": 2.0}],
    "TfidfTransformer": [{}, {"sublinear_tf": True, "norm": "l1"}],
    "TfidfVectorizer": [{}, {"sublinear_tf": True, "stop_words": ["the"]}],
    "TransformedTargetRegressor": [
        {"regressor": RIDGE, "func": np.log1p, "inverse_func": np.expm1},
        {"regressor": RIDGE, "transformer": preprocessing.QuantileTransformer(n_quantiles=10)},
    ],
    "TunedThresholdClassifierCV": [{"estimator": LOGISTIC}, {"estimator": svm.LinearSVC()}],
    "TweedieRegressor": [{}, {"power": 1.5}],
    "VotingClassifier": [
        {"estimators": [("a", LOGISTIC), ("b", FOREST)], "voting": "soft", "weights": [1, 2]},
        {"estimators": [("a", LOGISTIC), ("b", FOREST), ("c", svm.LinearSVC())]},
    ],
    "VotingRegressor": [{"estimators": [("a", RIDGE), ("b", STUMP)]}, {"estimators": [("a", RIDGE)], "weights": [3]}],
}  # fmt: skip
"""Arguments by class; a class that is missing is made without any, twice, for other data."""

POSITIVE = frozenset({
    "AdditiveChi2Sampler", "ComplementNB", "LatentDirichletAllocation", "MiniBatchNMF", "MultinomialNB", "NMF",
    "PowerTransformer", "SkewedChi2Sampler", "FunctionTransformer", "SelectKBest",
})  # fmt: skip
COUNTS = frozenset(
    {"CategoricalNB", "HistGradientBoostingClassifier", "HistGradientBoostingRegressor", "TfidfTransformer"}
)
BINARY = frozenset({"FixedThresholdClassifier", "TunedThresholdClassifierCV"})
WORDS = frozenset({"OneHotEncoder", "OrdinalEncoder", "TargetEncoder"})
GAPS = frozenset({"SimpleImputer", "KNNImputer", "IterativeImputer", "MissingIndicator"})
TEXTS = frozenset({"CountVectorizer", "TfidfVectorizer", "HashingVectorizer"})
LABELS = frozenset({"ClassifierChain", "MultiOutputClassifier"})
TARGETS = frozenset({"CCA", "PLSCanonical", "PLSSVD", "MultiOutputRegressor", "RegressorChain", "MultiTaskElasticNet",
                     "MultiTaskElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV"})  # fmt: skip
NO_OUTPUT = frozenset({"DictVectorizer", "FeatureHasher", "PatchExtractor", "MultiLabelBinarizer"})
"""Whose data are no arrays: dictionaries, images of any size, sets."""
