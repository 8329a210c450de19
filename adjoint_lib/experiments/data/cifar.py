"""What CIFAR-10 and CIFAR-100 are: their files, lengths, digests and class names. Facts, no code.

Both sets are kept as the official binary files: a row per image, its label byte(s) first, then
3072 bytes of 32 x 32 pixels in channel-first order. Every source ends as these same files, checked
with these same digests, so where an image came from can never change what it is.
"""

from dataclasses import dataclass

from adjoint_lib.experiments.data.checked import KnownFile

PIXELS = 32 * 32
CHANNELS = 3


@dataclass(frozen=True)
class DataSet:
    """The files of a data set, in the order of their images, and what its label bytes mean."""

    name: str
    folder: str  # name of the folder in the official archive, and in the cache
    archive: KnownFile
    splits: dict[str, tuple[KnownFile, ...]]
    label_bytes: int  # in front of each image; the last one is the class
    classes: tuple[str, ...]
    sample: KnownFile

    @property
    def files(self) -> tuple[KnownFile, ...]:
        """The files of all splits."""
        return tuple(file for files in self.splits.values() for file in files)

    @property
    def row_bytes(self) -> int:
        """Length of one image with its label(s)."""
        return self.label_bytes + CHANNELS * PIXELS


CIFAR10 = DataSet(
    name="cifar10",
    folder="cifar-10-batches-bin",
    archive=KnownFile(
        "cifar-10-binary.tar.gz",
        170_052_171,
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    ),
    splits={
        "train": (
            KnownFile(
                "data_batch_1.bin",
                30_730_000,
                "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
            ),
            KnownFile(
                "data_batch_2.bin",
                30_730_000,
                "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
            ),
            KnownFile(
                "data_batch_3.bin",
                30_730_000,
                "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
            ),
            KnownFile(
                "data_batch_4.bin",
                30_730_000,
                "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
            ),
            KnownFile(
                "data_batch_5.bin",
                30_730_000,
                "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
            ),
        ),
        "test": (
            KnownFile(
                "test_batch.bin",
                30_730_000,
                "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
            ),
        ),
    },
    label_bytes=1,
    classes=tuple("airplane automobile bird cat deer dog frog horse ship truck".split()),
    sample=KnownFile(
        "samples/cifar10.npz",
        844_237,
        "2a3509233c6f21e055a10e011dfbfc8e3f17c452330e17ecc47b4ae2bde70e47",
    ),
)

CIFAR100 = DataSet(
    name="cifar100",
    folder="cifar-100-binary",
    archive=KnownFile(
        "cifar-100-binary.tar.gz",
        168_513_733,
        "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
    ),
    splits={
        "train": (
            KnownFile(
                "train.bin",
                153_700_000,
                "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29",
            ),
        ),
        "test": (
            KnownFile(
                "test.bin",
                30_740_000,
                "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a",
            ),
        ),
    },
    label_bytes=2,  # coarse, fine
    classes=tuple(
        """
        apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus
        butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch
        crab crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house
        kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle
        mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree
        plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew
        skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank
        telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf
        woman worm
        """.split()
    ),
    sample=KnownFile(
        "samples/cifar100.npz",
        58_015,
        "6e3ce1e5669525bcfcf8b7034aebcdc3c1128dbf9f6ce06835d3b0cd5061d338",
    ),
)

DATASETS = {dataset.name: dataset for dataset in (CIFAR10, CIFAR100)}
