"""The error function of single precision: within 0.71 ulp with AVX-512, 0.99 ulp elsewhere.

Coefficients are minimax fits (Lawson's algorithm), rounded to single precision one after another.
"""

from __future__ import annotations

from triton_porting_kit.compiler.loops.arithmetic.elementary import exp
from triton_porting_kit.compiler.loops.arithmetic.expressions import Lanes, looked_up, polynomial

# erf(x) = x + x p(x^2) on |x| <= 1, and 1 - exp(x p(x)) on 1 <= x <= 4.
_ERF = (
    7.920368079794571e-05, -0.0008030761382542551, 0.005190733820199966, -0.02685512602329254, 0.11283618211746216,
    -0.3761262893676758, 0.12837916612625122,
)  # fmt: skip
_LOG_ERFC = (
    -1.3545144611271098e-05, 0.00034623005194589496, -0.0037389027420431376, 0.023968813940882683,
    -0.1064804345369339, -0.6350017189979553, -1.1286859512329102,
)  # fmt: skip

# With AVX-512, erf(x)/x = _RATIO + d p(d) on 16 intervals of 0 <= x <= 4, with d = x - _CENTRES. Each centre is the
# number near the middle of its interval whose ratio is closest to a single-precision value: within a relative 2^-35.
_PER_UNIT = 3.75  # intervals
_LANES = 16
_CENTRES = (
    0.06661463528871536, 0.2664358913898468, 0.5326300263404846, 0.8002002835273743, 1.0653549432754517,
    1.334753394126892, 1.5987097024917603, 1.8658932447433472, 2.1328442096710205, 2.3971877098083496,
    2.669360876083374, 2.931830406188965, 3.2005741596221924, 3.4656271934509277, 3.731008291244507,
    3.9963130950927734,
)  # fmt: skip
_RATIO = (
    1.1267123222351074, 1.1022378206253052, 1.0301744937896729, 0.9275429248809814, 0.8148428797721863,
    0.7049421072006226, 0.6106396913528442, 0.5314769744873047, 0.46765777468681335, 0.4168640673160553,
    0.3745615780353546, 0.34107232093811035, 0.3124420642852783, 0.2885477840900421, 0.2680240273475647,
    0.2502306401729584,
)  # fmt: skip
_POWERS = (
    (
        -0.010728450492024422, -0.03743896633386612, -0.04948265850543976, -0.03304709494113922,
        -0.005894049536436796, 0.012852820567786694, 0.017077693715691566, 0.012268036603927612, 0.005759741645306349,
        0.0014061285182833672, -0.0004474350716918707, -0.0008772866567596793, -0.0007392849074676633,
        -0.0005236508441157639, -0.0003362639108672738, -0.0002483126299921423,
    ),
    (
        0.11089729517698288, 0.08558274805545807, 0.02426193654537201, -0.03340029716491699, -0.05931518226861954,
        -0.05317547917366028, -0.032023053616285324, -0.011829350143671036, 9.964191121980548e-05,
        0.004548327066004276, 0.004955544602125883, 0.003964570350944996, 0.0028331007342785597, 0.001973447622731328,
        0.0013796768616884947, 0.0009815407684072852,
    ),
    (
        0.029908685013651848, 0.11047475039958954, 0.17058803141117096, 0.1634306013584137, 0.110618956387043,
        0.04740123078227043, 0.0018732823664322495, -0.020894503220915794, -0.026269201189279556,
        -0.023238079622387886, -0.017803937196731567, -0.013070783577859402, -0.00943510141223669,
        -0.006915316451340914, -0.005158478394150734, -0.003920189570635557,
    ),
    (
        -0.37312978506088257, -0.33004260063171387, -0.21338696777820587, -0.07513905316591263, 0.03568167984485626,
        0.09905382245779037, 0.11705659329891205, 0.10797794908285141, 0.08824522793292999, 0.06831126660108566,
        0.05153151601552963, 0.03944680839776993, 0.030456900596618652, 0.024017048999667168, 0.019252922385931015,
        0.015668142586946487,
    ),
    (
        -0.04997783526778221, -0.19210287928581238, -0.33890122175216675, -0.4158306419849396, -0.4244125485420227,
        -0.3858032524585724, -0.3271700143814087, -0.2662363648414612, -0.2136688232421875, -0.17239372432231903,
        -0.1399788111448288, -0.11626309156417847, -0.09760808199644089, -0.08325792104005814, -0.07183661311864853,
        -0.06261534243822098,
    ),
)  # fmt: skip


def erf(x: Lanes, has_scalef: bool) -> Lanes:
    """The error function. `has_scalef`: the target has AVX-512."""
    if has_scalef and x.value.lanes == _LANES:
        return _by_intervals(x)
    size = x.absolute()
    square = x * x
    small = x.fma(polynomial(square, _ERF), x)
    bounded = (size > 4.0).select(4.0, size)
    # The logarithm of erfc, with the rounding errors of its last sum and product.
    most = bounded * polynomial(bounded, _LOG_ERFC[:-1])
    factor = most + _LOG_ERFC[-1]
    factor_rest = (_LOG_ERFC[-1] - factor) + most
    logarithm = bounded * factor
    rest = bounded.fma(factor_rest, bounded.fma(factor, -logarithm))
    complement = exp(logarithm, has_scalef, moderate=True)
    large = 1.0 - complement.fma(rest, complement)
    return (size < 1.0).select(small, large.with_sign_of(x))


def _by_intervals(x: Lanes) -> Lanes:
    size = x.absolute()
    bounded = (size > 4.0).select(4.0, size)
    # Above 2^23, the lowest bits of a float's pattern count units.
    interval = bounded.fma(_PER_UNIT, 2.0**23).pattern()
    distance = bounded - looked_up(_CENTRES, interval)
    power, *powers = (looked_up(table, interval) for table in _POWERS)
    for next_power in powers:
        power = power.fma(distance, next_power)
    ratio = looked_up(_RATIO, interval)
    # The product with the large part of the ratio is exact, as a sum of two numbers. The small part's product is added
    # to the rounding error.
    product = bounded * ratio
    rest = bounded.fma(ratio, -product)
    return (product + bounded.fma(distance * power, rest)).with_sign_of(x)
