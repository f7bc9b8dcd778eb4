"""
Your data with scikit-learn
===========================

``RMClassifier`` is a classifier like any other of scikit-learn: here in a pipeline, on the digits
that come with scikit-learn.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rmsim as rs

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = make_pipeline(StandardScaler(), rs.RMClassifier(n=200, epochs=5))
model.fit(X_train, y_train)
accuracy = model.score(X_test, y_test)
error = (accuracy * (1 - accuracy) / len(y_test)) ** 0.5
print(f"accuracy {accuracy:.3f} ± {error:.3f} on {len(y_test)} digits")

fig, ax = plt.subplots(figsize=(4.2, 3.8), layout="constrained")
ConfusionMatrixDisplay.from_estimator(model, X_test, y_test, ax=ax, colorbar=False, cmap="Blues")
ax.set_title(f"accuracy {accuracy:.3f} ± {error:.3f}")
plt.show()
