"""The datasets and word vectors that can be fetched.

Checksums and sizes are those that public code states for that address: TensorFlow Datasets, Hugging Face datasets,
torchtext, fastai, ParlAI, scikit-learn; GloVe's for its first address. Else the first download's is recorded.
"""

from lib.datasets.fetching.sources import GIBI, Address, Source

DRIVE = "https://drive.google.com/uc?export=download&id="
FASTAI = "https://s3.amazonaws.com/fast-ai-nlp/"
ZHANG = "Zhang, Zhao & LeCun 2015, Character-level Convolutional Networks for Text Classification"
CREPE = "https://github.com/zhangxiangxiao/Crepe"
NO_LICENCE = "none stated; research use"
CSV = ("*/train.csv", "*/test.csv")

SOURCES = {
    source.name: source
    for source in (
        Source(
            "sst",
            "Stanford Sentiment Treebank, binary",
            "classification",
            NO_LICENCE,
            "Socher et al. 2013, Recursive Deep Models for Semantic Compositionality Over a Sentiment Treebank",
            "https://nlp.stanford.edu/sentiment/",
            (
                Address(
                    "https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip",
                    "sha256:5c613a4f673fc74097d523a2c83f38e0cc462984d847b82c7aaf36b01cbbbfcc",
                    789_539,
                ),
            ),
            ("sst",),
            ("negative", "positive"),
            {"train": 6920, "dev": 872, "test": 1821},
            ("*train.txt", "*dev.txt", "*test.txt"),
        ),
        Source(
            "imdb",
            "Large Movie Review Dataset",
            "classification",
            NO_LICENCE,
            "Maas et al. 2011, Learning Word Vectors for Sentiment Analysis",
            "https://ai.stanford.edu/~amaas/data/sentiment/",
            (
                Address(
                    "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
                    "sha256:c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
                    84_125_825,
                ),
            ),
            ("imdb",),
            ("negative", "positive"),
            {"train": 25_000, "test": 25_000},
            ("*/train/pos/*.txt", "*/train/neg/*.txt", "*/test/pos/*.txt", "*/test/neg/*.txt"),
            note="no dev split; field rating: 1-4, 7-10",
        ),
        Source(
            "20news",
            "20 Newsgroups, baseball against hockey",
            "classification",
            f"{NO_LICENCE}; the posts hold names and addresses of real people",
            "Lang 1995, Newsweeder: Learning to filter netnews; bydate release",
            "https://qwone.com/~jason/20Newsgroups/",
            (
                Address("https://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz"),
                Address("https://people.csail.mit.edu/jrennie/20Newsgroups/20news-bydate.tar.gz"),
                Address(
                    "https://ndownloader.figshare.com/files/5975967",
                    "sha256:8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
                    name="20news-bydate.tar.gz",
                ),
            ),
            ("20news",),
            ("baseball", "hockey"),
            {"train": 1236, "dev": 310, "test": 387},
        ),
        Source(
            "agnews",
            "AG News, four topics (World against Business: labels 0 and 2)",
            "classification",
            "non-commercial research",
            ZHANG,
            CREPE,
            (
                Address(
                    f"{DRIVE}0Bz8a_Dbh9QhbUDNpeUdjb0wxRms",
                    "sha256:4e2fc37d369e6e317a8b62d0d2f11d379f8c3dde60c07c35a46b069a246498ad",
                    11_784_327,
                    "ag_news_csv.tar.gz",
                ),
                Address(f"{FASTAI}ag_news_csv.tgz", "md5:b86f328f4dbd072486591cb7a5644dcd", 11_784_419),
            ),
            ("agnews4",),
            ("World", "Sports", "Business", "Sci/Tech"),
            {"train": 120_000, "test": 7600},
            CSV,
            note="no dev split",
        ),
        Source(
            "snli",
            "Stanford Natural Language Inference",
            "inference",
            "CC BY-SA 4.0",
            "Bowman et al. 2015, A large annotated corpus for learning natural language inference",
            "https://nlp.stanford.edu/projects/snli/",
            (
                Address(
                    "https://nlp.stanford.edu/projects/snli/snli_1.0.zip",
                    "sha256:afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e",
                    94_550_081,
                ),
            ),
            ("snli",),
            ("entailment", "neutral", "contradiction"),
            {"dev": 9842, "test": 9824},
            ("*/snli_1.0_*.jsonl",),
            2 * GIBI,
            note="pairs without a gold label are left out",
        ),
        Source(
            "babi",
            "bAbI tasks 1 to 3",
            "question answering",
            "CC BY 3.0",
            "Weston et al. 2015, Towards AI-Complete Question Answering; v1.2 en",
            "https://research.fb.com/downloads/babi/",
            (
                Address(
                    "https://www.thespermwhale.com/jaseweston/babi/tasks_1-20_v1-2.tar.gz",
                    "sha256:0364ebde659f14d11bc21744516c5ec49d3d06cb692733f66680771244998898",
                    15_719_851,
                ),
                Address("https://s3.amazonaws.com/text-datasets/babi_tasks_1-20_v1-2.tar.gz"),
            ),
            ("babi1", "babi2", "babi3"),
            texts={"train": 10_000, "train_1k": 1000, "test": 1000},
            members=("*/en/qa[123]_*.txt", "*/en-10k/qa[123]_*.txt"),
            note="train is the 10k version, train_1k the small one; no dev split",
        ),
        Source(
            "cnn",
            "CNN articles with cloze questions",
            "question answering",
            "none stated for the articles, which are CNN's; research use",
            "Hermann et al. 2015, Teaching Machines to Read and Comprehend; Chen, Bolton & Manning 2016",
            "https://cs.nyu.edu/~kcho/DMQA/",
            (
                Address(
                    f"{DRIVE}0BwmD_VLjROrfTTljRDVZMFJnVWM",
                    "sha256:9405beb90c9267e7769c86fa42720b7e479bcf38c64217c0d3f456ce8cd122ce",
                    name="cnn.tgz",
                ),
                Address("https://cs.stanford.edu/~danqi/data/cnn.tar.gz"),
            ),
            ("cnn",),
            texts={"train": 380_298},
            members=("*.question", "*/train.txt", "*/dev.txt", "*/test.txt"),
            unpacked=8 * GIBI,
        ),
        Source(
            "yelp",
            "Yelp reviews, one to five stars",
            "classification",
            "Yelp's dataset agreement, see https://www.yelp.com/dataset",
            ZHANG,
            CREPE,
            (
                Address(
                    f"{DRIVE}0Bz8a_Dbh9QhbZlU4dXhHTFhZQU0",
                    "md5:f7ddfafed1033f68ec72b9267863af6c",
                    name="yelp_review_full_csv.tar.gz",
                ),
                Address(
                    f"{FASTAI}yelp_review_full_csv.tgz",
                    "sha256:56006b0a17a370f1e366504b1f2c3e3754e4a3dda17d3e718a885c552869a559",
                    196_146_755,
                ),
            ),
            ("yelp",),
            members=CSV,
            unpacked=4 * GIBI,
            by_hand="the reviews of the dataset challenge itself need Yelp's consent: ask for them at "
            "https://www.yelp.com/dataset and put its review.json into yelp/ in place of the .csv files",
        ),
        Source(
            "amazon",
            "Amazon reviews, one to five stars",
            "classification",
            NO_LICENCE,
            f"{ZHANG}; McAuley & Leskovec 2013",
            CREPE,
            (
                Address(
                    f"{DRIVE}0Bz8a_Dbh9QhbZVhsUnRWRDhETzA",
                    "md5:57d28bd5d930e772930baddf36641c7c",
                    name="amazon_review_full_csv.tar.gz",
                ),
                Address(f"{FASTAI}amazon_review_full_csv.tgz", "md5:4a1196cf0adaea22f4bc3f592cddde90", 643_695_014),
            ),
            ("amazon",),
            members=CSV,
            unpacked=8 * GIBI,
        ),
        Source(
            "yahoo",
            "Yahoo! Answers, ten topics",
            "classification",
            NO_LICENCE,
            ZHANG,
            CREPE,
            (
                Address(
                    f"{DRIVE}0Bz8a_Dbh9Qhbd2JNdDBsQUdocVU",
                    "md5:f3f9899b997a42beb24157e62e3eea8d",
                    name="yahoo_answers_csv.tar.gz",
                ),
                Address(
                    f"{FASTAI}yahoo_answers_csv.tgz",
                    "sha256:2d4277855faf8b35259009425fa8f7fe1888b5644b47165508942d000f4c96ae",
                    319_476_345,
                ),
            ),
            ("yahoo",),
            members=CSV,
            unpacked=4 * GIBI,
        ),
        Source(
            "imdb10",
            "IMDB reviews, one to ten stars",
            "classification",
            NO_LICENCE,
            "Diao et al. 2014, Jointly Modeling Aspects, Ratings and Sentiments",
            "https://github.com/nihalb/JMARS",
            (Address("https://www.dropbox.com/s/0oea49j7j30y671/data.json?dl=1"),),
            ("imdb10",),
            unpacked=4 * GIBI,
            by_hand="Tang et al. (2015) cut it into emnlp-2015-data.7z, at http://ir.hit.edu.cn/~dytang: unpack it by "
            "7-Zip and put imdb-train.txt.ss, imdb-dev.txt.ss and imdb-test.txt.ss into imdb10/ in place of data.json",
        ),
        Source(
            "eraser_movies",
            "Movie reviews with human rationales (ERASER)",
            "classification",
            NO_LICENCE,
            "Zaidan & Eisner 2008, Modeling Annotators; DeYoung et al. 2020, ERASER",
            "https://www.eraserbenchmark.com/",
            (
                Address(
                    "https://www.eraserbenchmark.com/zipped/movies.tar.gz",
                    "sha256:66e18d4e6c9df9e9f5544572b0bfe92a39673f74ecbfc3859b46cedb2f5b2dee",
                    3_899_487,
                ),
            ),
            ("eraser_movies",),
            ("negative", "positive"),
            {"train": 1600, "dev": 200, "test": 199},
            ("*/docs/*", "*/train.jsonl", "*/val.jsonl", "*/test.jsonl"),
            note="train and dev rationales are sparse, test rationales exhaustive: never compare the two",
        ),
        Source(
            "fasttext-simple",
            "fastText vectors of the Simple English Wikipedia, 300 numbers a word",
            "word vectors",
            "CC BY-SA 3.0",
            "Bojanowski et al. 2017, Enriching Word Vectors with Subword Information",
            "https://fasttext.cc/docs/en/pretrained-vectors.html",
            (
                Address("https://dl.fbaipublicfiles.com/fasttext/vectors-wiki/wiki.simple.vec"),
                Address("https://s3-us-west-1.amazonaws.com/fasttext-vectors/wiki.simple.vec"),
            ),
            ("vectors/fasttext.simple.300d.npz",),
            unpacked=2 * GIBI,
        ),
        Source(
            "glove",
            "GloVe vectors of Common Crawl (840B tokens), 300 numbers a word",
            "word vectors",
            "Public Domain Dedication and License 1.0",
            "Pennington, Socher & Manning 2014, GloVe: Global Vectors for Word Representation",
            "https://nlp.stanford.edu/projects/glove/",
            tuple(
                Address(url, "sha256:c06db255e65095393609f19a4cfca20bf3a71e20cc53e892aafa490347e3849f", 2_176_768_927)
                for url in (
                    "https://nlp.stanford.edu/data/glove.840B.300d.zip",
                    "https://nlp.stanford.edu/data/wordvecs/glove.840B.300d.zip",
                    "https://huggingface.co/stanfordnlp/glove/resolve/main/glove.840B.300d.zip",
                )
            ),
            ("vectors/glove.840B.300d.npz",),
            unpacked=8 * GIBI,
        ),
    )
}
