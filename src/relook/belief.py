r"""From posteriors and answers to a belief about each item's class.

A model's out-of-sample posterior P is sharpened to R, and answers are taken to be drawn, given the true class y, from

    q(c | y) = (1 - eps) [ (1 - kappa) 1(c = y) + kappa R(c) ] + eps / C

so that a class the model confuses with y is also the likelier wrong answer. The belief is R(y) times the likelihood
of the answers. The given label adds `given_bonus` to its class's log odds: 0 by default, because P was fitted on the
given labels and has already counted them.
"""

import msgspec
import numpy as np

from relook.types import FloatArray, Rows


class AnswerModel(msgspec.Struct, frozen=True):
    """The constants of the model of answers; how they were chosen is told in the docs of the default policy."""

    sharpness: float = 2.0
    kappa: float = 0.02
    eps: float = 0.05
    given_bonus: float = 0.0

    def sharpened(self, posteriors: FloatArray) -> FloatArray:
        """Return R, n x C: posteriors to the power of `sharpness`, kept off zero."""
        powered = posteriors * posteriors if self.sharpness == 2.0 else posteriors**self.sharpness
        powered *= 0.99 / np.add.reduce(powered, axis=1, keepdims=True)
        powered += 0.001
        return powered

    def answer_chances(self, sharpened: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return q(c | y) for y other than c and for y = c, each n x C."""
        wrong = sharpened * ((1 - self.eps) * self.kappa)
        wrong += self.eps / sharpened.shape[1]
        return wrong, wrong + (1 - self.eps) * (1 - self.kappa)

    def belief(self, rows: Rows) -> FloatArray:
        """Return the belief about each item's class, n x C.

        >>> posteriors = np.array([[[.6, .4]]])
        >>> rows = Rows(np.array([0]), posteriors, np.array([0]), np.array([[0, 1]]))
        >>> AnswerModel().belief(rows).round(3).tolist()
        [[0.067, 0.933]]
        """
        sharpened = self.sharpened(rows.mean.astype(np.float64, copy=False))
        wrong, right = self.answer_chances(sharpened)
        return self.after_answers(rows, sharpened=sharpened, gain=np.log(right) - np.log(wrong))

    def after_answers(self, rows: Rows, *, sharpened: FloatArray, gain: FloatArray) -> FloatArray:
        """Return the belief from R and the log likelihood ratio that one answer for a class gives it."""
        logs = np.log(sharpened)
        if rows.answer_counts is not None:
            logs += rows.answer_counts * gain
        if self.given_bonus:
            logs += rows.given * self.given_bonus
        logs -= np.maximum.reduce(logs, axis=1, keepdims=True)
        likelihood = np.exp(logs, out=logs)
        likelihood /= np.add.reduce(likelihood, axis=1, keepdims=True)
        return likelihood
