"""The error function of single precision: within 0.71 ulp with AVX-512, 0.91 ulp with AVX2, 0.99 ulp elsewhere.

Coefficients are minimax fits (Lawson's algorithm), rounded to single precision one after another.
"""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class _Intervals:
    """erf(x)/x = ratio + d p(d) with d = x - centre, on each interval of 0 <= x <= 4.

    Each centre is a number inside its interval whose ratio is close to a single-precision value: within a relative
    2^-35. The polynomials of the first interval are fitted to give as exact a ratio at zero: tiny numbers multiply it.
    """

    centres: tuple[float, ...]
    ratios: tuple[float, ...]
    powers: tuple[tuple[float, ...], ...]


_INTERVALS = {
    16: _Intervals(
        (
            0.06661463528871536, 0.2664358913898468, 0.5326300263404846, 0.8002002835273743, 1.0653549432754517,
            1.334753394126892, 1.5987097024917603, 1.8658932447433472, 2.1328442096710205, 2.3971877098083496,
            2.669360876083374, 2.931830406188965, 3.2005741596221924, 3.4656271934509277, 3.731008291244507,
            3.9963130950927734,
        ),
        (
            1.1267123222351074, 1.1022378206253052, 1.0301744937896729, 0.9275429248809814, 0.8148428797721863,
            0.7049421072006226, 0.6106396913528442, 0.5314769744873047, 0.46765777468681335, 0.4168640673160553,
            0.3745615780353546, 0.34107232093811035, 0.3124420642852783, 0.2885477840900421, 0.2680240273475647,
            0.2502306401729584,
        ),
        (
            (
                -0.010728450492024422, -0.03743896633386612, -0.04948265850543976, -0.03304709494113922,
                -0.005894049536436796, 0.012852820567786694, 0.017077693715691566, 0.012268036603927612,
                0.005759741645306349, 0.0014061285182833672, -0.0004474350716918707, -0.0008772866567596793,
                -0.0007392849074676633, -0.0005236508441157639, -0.0003362639108672738, -0.0002483126299921423,
            ),
            (
                0.11089729517698288, 0.08558274805545807, 0.02426193654537201, -0.03340029716491699,
                -0.05931518226861954, -0.05317547917366028, -0.032023053616285324, -0.011829350143671036,
                9.964191121980548e-05, 0.004548327066004276, 0.004955544602125883, 0.003964570350944996,
                0.0028331007342785597, 0.001973447622731328, 0.0013796768616884947, 0.0009815407684072852,
            ),
            (
                0.029908685013651848, 0.11047475039958954, 0.17058803141117096, 0.1634306013584137, 0.110618956387043,
                0.04740123078227043, 0.0018732823664322495, -0.020894503220915794, -0.026269201189279556,
                -0.023238079622387886, -0.017803937196731567, -0.013070783577859402, -0.00943510141223669,
                -0.006915316451340914, -0.005158478394150734, -0.003920189570635557,
            ),
            (
                -0.37312978506088257, -0.33004260063171387, -0.21338696777820587, -0.07513905316591263,
                0.03568167984485626, 0.09905382245779037, 0.11705659329891205, 0.10797794908285141,
                0.08824522793292999, 0.06831126660108566, 0.05153151601552963, 0.03944680839776993,
                0.030456900596618652, 0.024017048999667168, 0.019252922385931015, 0.015668142586946487,
            ),
            (
                -0.04997783526778221, -0.19210287928581238, -0.33890122175216675, -0.4158306419849396,
                -0.4244125485420227, -0.3858032524585724, -0.3271700143814087, -0.2662363648414612,
                -0.2136688232421875, -0.17239372432231903, -0.1399788111448288, -0.11626309156417847,
                -0.09760808199644089, -0.08325792104005814, -0.07183661311864853, -0.06261534243822098,
            ),
        ),
    ),
    8: _Intervals(
        (
            0.204972505569458, 0.7498831748962402, 1.2500932216644287, 1.7498492002487183, 2.25053334236145,
            2.749077796936035, 3.250096082687378, 3.7511816024780273,
        ),
        (
            1.1127738952636719, 0.9482550621032715, 0.7382826805114746, 0.5638564229011536, 0.44369086623191833,
            0.3637215495109558, 0.3076818883419037, 0.2665826380252838,
        ),
        (
            (
                -0.018600231036543846, 0.014237133786082268, 0.010042905807495117, -0.0033165167551487684,
                -0.0028159546200186014, -0.0003645409888122231, 0.00013640050019603223, 8.999476267490536e-05,
            ),
            (
                -0.029941245913505554, -0.037267010658979416, 0.008094985038042068, 0.014865368604660034,
                0.0035613023210316896, -0.0006651313742622733, -0.0007156822248362005, -0.000357661338057369,
            ),
            (
                0.09638170897960663, -0.0248407032340765, -0.057979926466941833, -0.019687222316861153,
                0.002862048102542758, 0.004723961930721998, 0.0026479591615498066, 0.0013419849565252662,
            ),
            (
                0.08797401934862137, 0.16933497786521912, 0.06632006913423538, -0.013661357574164867,
                -0.02550160139799118, -0.016257397830486298, -0.008892274461686611, -0.005047797225415707,
            ),
            (
                -0.34838008880615234, -0.10027681291103363, 0.08464877307415009, 0.11410059034824371,
                0.07906915247440338, 0.04746045172214508, 0.02909599058330059, 0.018944112583994865,
            ),
            (
                -0.1503618210554123, -0.4070116877555847, -0.40142354369163513, -0.29205581545829773,
                -0.19398318231105804, -0.13209238648414612, -0.09465957432985306, -0.07106608152389526,
            ),
        ),
    ),
}  # fmt: skip
"""By their number, which is that of the lanes of an instruction that looks coefficients up."""

_BELOW_4 = 4 - 2.0**-21  # 4 more is below 8


def erf(x: Lanes, has_scalef: bool) -> Lanes:
    """The error function. `has_scalef`: the target has AVX-512."""
    if (lanes := x.value.lanes) in _INTERVALS and lanes == x.builder.lookup_lanes:
        return _by_intervals(x, _INTERVALS[lanes])
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


def _by_intervals(x: Lanes, intervals: _Intervals) -> Lanes:
    size = x.absolute()
    if len(intervals.centres) == 16:
        # 3.75 intervals to a unit: the first and the last are halves. Above 2^23, a float's lowest bits count units.
        bounded = (size > 4.0).select(4.0, size)
        interval = bounded.fma(3.75, 2.0**23).pattern()
    else:
        # Halves of units. Between 4 and 8, the three highest bits of a float's fraction count them.
        bounded = (size > _BELOW_4).select(_BELOW_4, size)
        interval = (bounded + 4.0).pattern() >> 20
    distance = bounded - looked_up(intervals.centres, interval)
    power, *powers = (looked_up(table, interval) for table in intervals.powers)
    for next_power in powers:
        power = power.fma(distance, next_power)
    ratio = looked_up(intervals.ratios, interval)
    # The product with the large part of the ratio is exact, as a sum of two numbers. The small part's product is added
    # to the rounding error.
    product = bounded * ratio
    rest = bounded.fma(ratio, -product)
    return (product + bounded.fma(distance * power, rest)).with_sign_of(x)
