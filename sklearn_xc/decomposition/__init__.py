"""Scores over many labels, trained on the labels that matter for each instance.

::

    DecompMIPSClassifier          decomp_mips.py: parameters, fit
      |-- _model.py               answers of a fitted model
      |-- _training_set.py        resolved parameters; equal instances merged
      |-- search.py               learning rate and epochs, by held-out instances
      |-- _weights.py             initial weights, intercepts, proxies; memory of a training
      '-- training.py             epochs of mini-batches; averages; the index is updated
            |-- batch_sgd.py      one mini-batch
            |-- layers.py         embeddings of instances
            '-- moving_rows.py    matrices whose rows take steps

    gradients/                    exact, sampled, searched, coupled by messages
    losses/                       losses of label sets
    skip_gram/                    word vectors by the same steps
"""

from sklearn_xc.decomposition.decomp_mips import DecompMIPSClassifier

__all__ = ["DecompMIPSClassifier"]
