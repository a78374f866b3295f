"""Programs about addresses, masks and pointers: a fixed selection of random programs that every port has to run.

Take every pair of `conformance.stress.features` that occurs in at least five of the first 1,500 programs. The selection
contains each of these pairs at least twice.
"""

from __future__ import annotations

from triton_porting_kit.conformance.stress.checks import Selected
from triton_porting_kit.conformance.stress.generator import ADDRESSES

NUMBERS = (
    3, 4, 5, 6, 19, 23, 26, 27, 29, 32, 42, 44, 46, 48, 50, 60, 64, 72, 80, 85, 88, 90, 93, 94, 108, 117, 124, 131,
    134, 137, 139, 141, 143, 145, 149, 151, 157, 159, 161, 166, 175, 185, 186, 197, 198, 199, 200, 202, 209, 210,
    212, 216, 227, 228, 229, 238, 239, 248, 252, 256, 259, 265, 267, 272, 274, 276, 280, 288, 316, 326, 339, 346,
    350, 369, 378, 381, 385, 387, 395, 397, 400, 408, 420, 422, 429, 432, 439, 443, 450, 454, 457, 460, 476, 480,
    491, 498, 514, 515, 522, 524, 536, 538, 572, 583, 586, 592, 599, 611, 613, 615, 618, 619, 628, 630, 636, 652,
    660, 663, 665, 681, 701, 713, 731, 742, 746, 757, 760, 764, 810, 813, 816, 831, 839, 841, 866, 870, 884, 905,
    908, 913, 917, 918, 923, 924, 936, 937, 942, 955, 956, 963, 964, 974, 978, 979, 997, 1007, 1015, 1021, 1026,
    1028, 1041, 1050, 1065, 1070, 1072, 1082, 1084, 1098, 1099, 1101, 1132, 1161, 1163, 1189, 1205, 1209, 1215,
    1219, 1221, 1223, 1229, 1233, 1251, 1252, 1257, 1302, 1304, 1309, 1314, 1341, 1354, 1358, 1362, 1410, 1423,
    1431, 1442, 1448, 1455, 1457, 1460, 1493,
)  # fmt: skip

CHECKS = Selected("language/addresses", ADDRESSES, NUMBERS)
