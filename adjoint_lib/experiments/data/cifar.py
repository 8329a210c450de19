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


# Name, length in bytes, sha256.
_KNOWN = """
cifar-10-binary.tar.gz 170052171 c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd
data_batch_1.bin 30730000 cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5
data_batch_2.bin 30730000 a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed
data_batch_3.bin 30730000 bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67
data_batch_4.bin 30730000 014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48
data_batch_5.bin 30730000 755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add
test_batch.bin 30730000 8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b
samples/cifar10.npz 844237 2a3509233c6f21e055a10e011dfbfc8e3f17c452330e17ecc47b4ae2bde70e47
cifar-100-binary.tar.gz 168513733 58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec
train.bin 153700000 f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29
test.bin 30740000 d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a
samples/cifar100.npz 58015 6e3ce1e5669525bcfcf8b7034aebcdc3c1128dbf9f6ce06835d3b0cd5061d338
"""
_FILES = {
    name: KnownFile(name, int(size), sha256)
    for name, size, sha256 in map(str.split, _KNOWN.strip().splitlines())
}

_CLASSES10 = "airplane automobile bird cat deer dog frog horse ship truck"
_CLASSES100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus
butterfly camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch
crab crocodile cup dinosaur dolphin elephant flatfish forest fox girl hamster house
kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree motorcycle
mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree
plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew
skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank
telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf
woman worm
"""


def _data_set(name: str, archive: str, train: list[str], test: str, **facts) -> DataSet:
    splits = {"train": tuple(_FILES[file] for file in train), "test": (_FILES[test],)}
    sample = _FILES[f"samples/{name}.npz"]
    return DataSet(name, archive=_FILES[archive], splits=splits, sample=sample, **facts)


DATASETS = {
    "cifar10": _data_set(
        "cifar10",
        "cifar-10-binary.tar.gz",
        [f"data_batch_{number}.bin" for number in range(1, 6)],
        "test_batch.bin",
        folder="cifar-10-batches-bin",
        label_bytes=1,
        classes=tuple(_CLASSES10.split()),
    ),
    "cifar100": _data_set(
        "cifar100",
        "cifar-100-binary.tar.gz",
        ["train.bin"],
        "test.bin",
        folder="cifar-100-binary",
        label_bytes=2,  # coarse, fine
        classes=tuple(_CLASSES100.split()),
    ),
}
