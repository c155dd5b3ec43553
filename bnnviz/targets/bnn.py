r"""Define the posterior of any network on data.

With weights :math:`\theta`, rows :math:`(x_i, y_i)`, a likelihood of the outputs :math:`f_\theta(x_i)` and a normal
prior of standard deviation :math:`\sigma`,

.. math:: U(\theta) = -\sum_{i=1}^N \log p(y_i \mid f_\theta(x_i)) + \frac{|\theta|^2}{2 \sigma^2}

(MacKay 1992, https://doi.org/10.1162/neco.1992.4.3.448; Neal 1996, https://doi.org/10.1007/978-1-4612-0745-0).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from bnnviz import data as datasets
from bnnviz.data.tables import arrays, source
from bnnviz.errors import BnnvizError, suggests
from bnnviz.messages import Message, Remedy
from bnnviz.targets import likelihoods, mlp_gradients, raw_scales, validation, weight_priors
from bnnviz.targets.bnn_curvature import NetworkCurvature
from bnnviz.targets.modules import calls, check, names
from bnnviz.targets.modules.calls import PROTECTED, CallRules

_LARGEST = 1e18
_LABELLED_ROWS = 8  # minimum rows for which two distinct values are taken as labels
_SIZES = (0.0, 1.0, 10.0, 100.0, 1000.0)  # of random weights, for detecting bounded outputs
_APART = 0.02  # between the module's own weights and those of a trial
_PRIOR_DRAWS = 4  # at which a user's function is tried
_BOUNDED = 2.01  # between the outputs of a tanh
DataSets = datasets.DataSet | datasets.ImageSet


class BNN(NetworkCurvature):
    """Posterior distribution of the weights of a neural network; `bnnviz.BNN` documents the parameters."""

    title = "Your network"
    emits = frozenset({"prediction"})
    start_at_mode = True

    @suggests
    @torch.inference_mode(False)
    def __init__(
        self,
        module: nn.Module,
        data: Any,
        likelihood: Any = None,
        prior_sd: float = 1.0,
        noise_sd: float | Sequence[float] | None = None,
        noise: str | None = None,
        prior: Literal["equal", "fan_in", "learned"] | Mapping[str, Any] = "equal",
        sample: str | Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        # Rows, module and states have double precision until `to` is called.
        self.dtype = torch.float64
        self.module = names.frozen_but(check.copy_of(module), sample)
        self.layers = mlp_gradients.read_layers(self.module)
        self.units = mlp_gradients.hidden_layers(self.module)
        self.widest = max((max(layer.inputs, layer.outputs) for layer in self.layers or []), default=1)
        self.shapes = {name: p.shape for name, p in names.trainable(self.module).items()}
        self.aliases = names.aliases(self.module)
        self.frozen = sum(p.numel() for p in self.module.parameters() if not p.requires_grad)
        self.prior_precision = validation.scale("prior_sd", prior_sd) ** -2
        data = datasets.load(data) if isinstance(data, str) else data
        self.table = data if isinstance(data, datasets.UserTable) else None
        data = data if self.table is None else self.table.load()
        self.data_set = data if isinstance(data, DataSets) else None
        inputs = data[0] if isinstance(data, tuple | list) and len(data) == 2 else None
        #: Names of the input columns of a data set or a frame; empty if unnamed.
        self.input_names = tuple(map(str, inputs.columns)) if source.is_frame(inputs) else ()
        if isinstance(data, datasets.DataSet):
            self.input_names = data.x_names
        if self.data_set is not None:
            data = self._rows_of(self.data_set, "train")
        elif not isinstance(data, tuple | list) or len(data) != 2:
            raise BnnvizError(
                "data is a pair (inputs, observations) of arrays with all rows, a data set of bnnviz.data, or a"
                " table of bnnviz.data.read_table.",
                "data",
            )
        self.x, columns = self._check_rows(*data)
        if likelihood is None:
            self._refuse_labels(columns)
        self.likelihood = likelihoods.make("gaussian" if likelihood is None else likelihood, columns, noise_sd, noise)
        self.y = self.likelihood.kept(columns)
        self.own_names, self.likelihood_dim = self.likelihood.parameters, len(self.likelihood.parameters)
        self.weight_prior = self._prior_of(prior)
        self.scale_names = [] if self.weight_prior is None else self.weight_prior.names
        if self.weight_prior is not None and self.weight_prior.laws:
            # The derivatives by hand, and the symmetries of hidden units, are those of normal weights.
            self.layers, self.units = None, []
        self.dim = self.weights + len(self.scale_names) + self.likelihood_dim
        self.mode_overfits = bool(self.scale_names or self.likelihood_dim)
        self.outputs_per_row = self._check_module()
        self.rules = CallRules() if self.layers is not None else self._try_module()
        self.jumps = self.rules.jumps
        self._units, self._multiplied = self._count_units()
        self._convolves = any(isinstance(child, nn.modules.conv._ConvNd) for child in self.module.modules())
        self.likelihood.check(self.y, self.outputs_per_row)
        self._try_likelihood()
        self._range = self._check_range()
        self.examples = len(self.x)

    def replace_rows(self, x: Any, y: Any) -> None:
        """Replace the training rows between two steps of a sampler.

        Prior, likelihood and scale do not change, so chains can continue from their positions.

        Parameters
        ----------
        x, y : array_like
            Inputs (rows, ...) and observations (rows,), in original units. For a data set of `bnnviz.data` the arrays
            may be empty. The posterior is then the prior.

        Raises
        ------
        BnnvizError
            If the rows are incompatible with the module or the likelihood. The target is not modified.
        """
        data = (x, y) if self.data_set is None else self.data_set.with_training(x, y)
        new_x, columns = self._check_rows(*((x, y) if self.data_set is None else self._rows_of(data, "train")))
        if new_x.shape[1:] != self.x.shape[1:]:
            raise BnnvizError(
                f"The new inputs have shape {tuple(new_x.shape)}; a row needs {tuple(self.x.shape[1:])}.", "data"
            )
        if columns.shape[1] != self.likelihood.columns:
            raise BnnvizError(
                f"The new observations have shape {tuple(columns.shape)}, but the likelihood has"
                f" {self.likelihood.columns} columns.",
                "data",
            )
        rows = new_x, self.likelihood.kept(columns)
        self.likelihood.check(rows[1], self.outputs_per_row)
        self.x, self.y = (new.to(old) for new, old in zip(rows, (self.x, self.y), strict=True))
        self.examples = len(self.x)
        if self.data_set is not None:
            self.data_set = data

    def _refuse_labels(self, columns: Tensor) -> None:
        """Refuse labels without a chosen likelihood."""
        values = columns.unique() if columns.shape[1] == 1 else columns.new_zeros(0)
        classes = self.data_set is not None and self.data_set.task == "classification"
        if classes or (len(columns) >= _LABELLED_ROWS and len(values) == 2):
            found = "are classes" if classes else f"have two values, {float(values[0]):g} and {float(values[1]):g}"
            raise BnnvizError(
                f"The observations {found}: give likelihood='bernoulli' for labels 0 and 1 and a network with one"
                " output, 'categorical' for a network with an output for each class, or 'gaussian' to take them as"
                " numbers.",
                "likelihood",
            )

    def _check_range(self) -> tuple[float, float]:
        """Return the smallest and largest output of the module for weights of very different sizes."""
        if not len(self.x):
            return -math.inf, math.inf
        rows = self.fed(check.some_rows(self.x), torch.float64)
        own, rng = self.point(), torch.Generator().manual_seed(0)
        noise = torch.randn(len(_SIZES), len(own), generator=rng, dtype=torch.float64)
        with torch.no_grad():
            found = [
                self._outputs_of((size * each + own)[None], rows) for size, each in zip(_SIZES, noise, strict=True)
            ]
        outputs = torch.stack(found)
        outputs = outputs[torch.isfinite(outputs)]
        if not len(outputs):
            return -math.inf, math.inf
        low, high = float(outputs.min()), float(outputs.max())
        if self.likelihood.takes_logits and high - low <= _BOUNDED:
            raise BnnvizError(
                f"The module's outputs are between {low:.3g} and {high:.3g} for all weights, as after a final softmax,"
                f" sigmoid or tanh, but a {self.likelihood.name} likelihood takes them as"
                f" {self.likelihood.takes_logits}: remove the last activation.",
                "module",
            )
        return low, high

    @property
    def noise_is_learned(self) -> bool:
        """Whether the last coordinate is the noise of a gaussian likelihood with one column."""
        return isinstance(self.likelihood, likelihoods.Normal) and self.likelihood_dim == 1

    def _prior_of(self, given: str | Mapping[str, Any]) -> weight_priors.WeightPrior | None:
        """Return the prior of the weights, or None for an equal scale."""
        rate = self.prior_precision**0.5
        if isinstance(given, Mapping):
            return weight_priors.by_name(self.shapes, given, rate)
        if given not in weight_priors.PRIORS:
            raise BnnvizError(f"prior cannot be {given!r}; choose one of {', '.join(weight_priors.PRIORS)}.", "prior")
        if given == "equal":
            return None
        of_inputs = mlp_gradients.input_weights(self.module) if self.layers is not None else ()
        logits = self.layers is not None and self.likelihood.task == "classification"
        of_logits = mlp_gradients.output_weights(self.module) if logits else ()
        return weight_priors.by_fan_in(self.shapes, given == "learned", rate, of_inputs, of_logits)

    def _rows_of(self, data: DataSets, part: str) -> tuple[Any, Any]:
        """Return inputs and observations of a part of a data set, in the target's form."""
        return data.scaled(part)

    def _kept(self, x: Tensor) -> Tensor:
        """Return inputs in their stored precision, or as integers."""
        return x.long() if self.whole else x.to(torch.float64)

    def _check_rows(self, x: Any, y: Any) -> tuple[Tensor, Tensor]:
        """Return inputs (rows, ...) and observations (rows, columns)."""
        arrays.check_order(x, y)
        x, y = validation.rows("inputs", x), validation.rows("observations", y)
        x = self._kept(x if x.ndim > 1 else x[:, None])
        y = y[:, None] if y.ndim == 1 else y.flatten(1)
        missing = len(x) == 0 and self.data_set is None
        if len(x) != len(y) or missing or not y.shape[1]:
            raise BnnvizError(
                f"data has {len(x)} inputs and observations of shape {tuple(y.shape)}; give one observation per row.",
                "data",
            )
        if not torch.isfinite(x).all() or not torch.isfinite(y.double()).all():
            raise BnnvizError("data contains missing or infinite values. Remove or impute these rows.", "data")
        if len(x) and max(x.abs().max(), y.double().abs().max()) > _LARGEST:
            raise BnnvizError(
                f"data contains numbers beyond {_LARGEST:g}, whose squares overflow in single precision; use another"
                " unit.",
                "data",
            )
        return x, y

    def _check_module(self) -> int:
        """Return the number of outputs, after trials in the module's own precision, and move it to double precision."""
        own, sizes = next(self.module.parameters()).dtype, (len(self.x), *self.likelihood.width())
        dtype = torch.float32 if own == torch.float32 else torch.float64  # as a CPU computes few others
        calls.move(self.module, self.device, dtype)
        try:
            found = check.check_outputs(self.module, self.fed(check.some_rows(self.x), dtype), *sizes)
        except BnnvizError as error:
            if not bool((self.x == self.x.round()).all()):
                raise
            self.x, self.whole = self.x.long(), True
            try:
                found = check.check_outputs(self.module, check.some_rows(self.x), *sizes)
            except BnnvizError:
                raise error from None
        rows, rng = self.fed(check.some_rows(self.x), dtype), torch.Generator().manual_seed(0)
        draw = self.point()
        draw = draw + _APART * torch.randn(draw.shape, generator=rng, dtype=draw.dtype)
        weights = {name: held.to(dtype) for name, held in self.unflatten(draw).items()}
        rules = PROTECTED._replace(names=names.places(self.module))
        check.check_loaded(self.module, weights, self.state_dict(draw), rows, rules)
        calls.move(self.module, self.device, torch.float64)
        return found.shape[1]

    def _try_module(self) -> CallRules:
        """Return how to call the module, found by trials in double precision."""
        rows = self.fed(check.some_rows(self.x), torch.float64)
        trial = rows, check.double_outputs(self.module, rows)

        def outputs(theta: Tensor, x: Tensor, rules: CallRules) -> Tensor:
            self.rules = rules
            return self._outputs_of(theta, x, x.ndim > rows.ndim)

        theta = BNN.initial(self, 2, torch.Generator(self.device).manual_seed(0))
        rules = check.rules_of(self.module, outputs, theta, self.point()[None], rows, names.places(self.module))
        self.trial = trial
        return rules

    def _count_units(self) -> tuple[int, int]:
        """Return the number of values per row that a gradient stores, and the multiply-adds per row."""
        counts: list[int] = []
        products: list[int] = []

        def note(child: nn.Module, inputs: Any, output: Any) -> None:
            count = output.numel() if isinstance(output, Tensor) else 0
            counts.append(count)
            if isinstance(child, nn.Linear | nn.modules.conv._ConvNd):
                products.append(count * child.weight[0].numel())

        leaves = [child for child in self.module.modules() if not list(child.children())]
        handles = [leaf.register_forward_hook(note) for leaf in leaves]
        try:
            with torch.no_grad():
                calls.call(self.module, {}, self.fed(self.x[:1], torch.float64), self.rules)
        finally:
            for handle in handles:
                handle.remove()
        return max(sum(counts), 1), sum(products)

    def _try_likelihood(self) -> None:
        """Try a user's function on outputs of the module with its own weights."""
        self._is_loss = False
        if isinstance(self.likelihood, likelihoods.OwnLikelihood):
            # Rows from the whole range of the observations, since a function may have cases such as censoring.
            order = self.y.flatten(1).sum(1).argsort() if self.y.ndim > 1 else self.y.argsort()
            rows, y = self.fed(check.some_rows(self.x[order]), torch.float64), check.some_rows(self.y[order])
            noise = torch.randn(_PRIOR_DRAWS, self.dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
            with torch.no_grad():
                own = calls.call(self.module, {}, rows, self.rules)
                others = [self._outputs_of(each[None] * self.prior_precision**-0.5, rows) for each in noise]
            f = torch.stack([own, *(each.reshape(own.shape) for each in others)])
            self.likelihood.tried(f, y)
            self._is_loss = self.likelihood.is_loss(own, y)

    def initial(self, chains: int, rng: torch.Generator) -> Tensor:
        """Return normally distributed initial positions (chains, dim), scaled by the fan-in of each layer."""
        parts = []
        shapes = [*self.shapes.values(), *([torch.Size([1])] * (len(self.scale_names) + self.likelihood_dim))]
        if self.weight_prior is not None:
            shapes = [torch.Size([self.dim])]
        for shape in shapes:
            sd = min(self.prior_precision**-0.5, max(shape[1:].numel(), 1) ** -0.5)
            noise = torch.randn(chains, shape.numel(), generator=rng, device=rng.device, dtype=self.dtype)
            parts.append(sd * noise)
        return torch.cat(parts, dim=1)

    def remarks(self) -> list[Message]:
        """Return notes on classes without training rows, raw scales, and unusual properties of the module."""
        if self.data_set is None:
            found = [*self._raw_scales()]
        else:
            found = [Message("remark", text=text) for text in self.data_set.remarks()]
        if self._is_loss:
            found.append(Message("likelihood_sign", Remedy("return the log density")))
        found += self._of_range()
        children = list(self.module.modules())
        if any(isinstance(child, nn.modules.dropout._DropoutNd) and child.p > 0 for child in children):
            found.append(Message("dropout_off"))
        if self.frozen:
            found.append(Message("frozen_weights", frozen=self.frozen, total=self.frozen + self.weights))
        norms = (child for child in children if isinstance(child, nn.modules.batchnorm._NormBase))
        if any(norm.running_mean is not None for norm in norms):
            found.append(Message("batch_norm"))
        if self.rules.jumps:
            found.append(Message("jumping_module"))
        if self.rules.one_by_one:
            found.append(Message("one_by_one", what="module's forward"))
        return found

    def _raw_scales(self) -> Iterator[Message]:
        """Warn of unstandardised rows far from the scale that the prior expects."""
        # A module other than a multilayer perceptron may scale its inputs itself.
        if self.layers is not None and self.x.ndim == 2 and not self.whole:
            yield from raw_scales.of_inputs(self.x)
        if self.likelihood.task == "regression" and not self.likelihood.discrete and self.prior_precision == 1:
            yield from raw_scales.of_observations(self.y.reshape(len(self.x), -1))

    def _of_range(self) -> Iterator[Message]:
        """Warn if the module cannot reach the observations or the outputs they require."""
        low, high = self._range
        drop = Remedy("remove the last activation")
        if self.likelihood.takes_logits and low >= 0:
            values = {"likelihood": self.likelihood.name, "what": self.likelihood.takes_logits}
            yield Message("outputs_positive", drop, **values)
        if self.likelihood.task != "regression" or self.likelihood.discrete or high - low > _BOUNDED:
            return
        outside = float(((self.y < low - _BOUNDED) | (self.y > high + _BOUNDED)).double().mean())
        if outside > 0:
            yield Message("outputs_bounded", drop, low=low, high=high, percent=100 * outside)

    def held_out(self) -> tuple[Tensor, Tensor]:
        """Return preprocessed inputs (rows, ...) and observations (rows,) of the test rows (see `seen`).

        Without a data set of `bnnviz.data`, return the training rows.
        """
        if self.data_set is None:
            return self.x, self.y
        kept = zip(self._rows_of(self.data_set, "test"), (self.x, self.y), strict=True)
        x, y = (torch.as_tensor(part, dtype=like.dtype, device=self.device) for part, like in kept)
        return x, y

    def __repr__(self) -> str:
        kind = "" if self.weight_prior is None else "learned, " if self.scale_names else "scaled, "
        sizes = f"{self.weights:,} weights, {len(self.x):,} rows"
        prior = f"prior {kind}sd {self.prior_precision**-0.5:.3g}"
        return f"<{type(self).__name__}: {sizes}, {self.likelihood.name} likelihood, {prior}>"
