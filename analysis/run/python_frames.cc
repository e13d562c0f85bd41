#include "analysis/run/python_frames.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

namespace headrace::analysis {

bool IsIn(const PythonFrame& frame, std::string_view part) {
  for (size_t at = frame.file.find(part); at != std::string_view::npos;
       at = frame.file.find(part, at + 1)) {
    if (at == 0 || frame.file[at - 1] == '/') return true;
  }
  return false;
}

namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

template <size_t kCount>
bool IsInAny(const PythonFrame& frame, const std::string_view (&parts)[kCount]) {
  return std::any_of(std::begin(parts), std::end(parts),
                     [&](std::string_view part) { return IsIn(frame, part); });
}

// Words of a name: "TrainStep.load_batch2" has "train", "step", "load", "batch".
std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words;
  bool was_lower = false, in_word = false;
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalpha(u) == 0) {
      in_word = false;
      continue;
    }
    const bool is_upper = std::isupper(u) != 0;
    if (!in_word || (is_upper && was_lower)) words.emplace_back();
    words.back() += static_cast<char>(std::tolower(u));
    was_lower = !is_upper;
    in_word = true;
  }
  return words;
}

int64_t NumberIn(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return std::max<int64_t>(number, 0);
}

// "train.py:30, loop 28, next" of "main (train.py:30, loop 28, next)".
void ReadPlace(std::string_view place, PythonFrame* frame) {
  constexpr std::string_view kLoop = ", loop ", kNoLoop = ", no loop";
  const auto take = [&place](std::string_view mark) {
    const bool has = place.ends_with(mark);
    if (has) place.remove_suffix(mark.size());
    return has;
  };
  frame->sleeps = take(", sleeps");
  frame->locks = take(", locks");
  frame->asks = take(", next");
  if (place.ends_with(kNoLoop)) {
    frame->is_own = true;
    place.remove_suffix(kNoLoop.size());
  } else if (const size_t at = place.rfind(kLoop); at != std::string_view::npos) {
    frame->is_own = true;
    const std::string_view loops = place.substr(at + kLoop.size());
    const size_t of = loops.find(" of ");
    frame->loop = NumberIn(loops);
    frame->outermost = of == std::string_view::npos ? frame->loop : NumberIn(loops.substr(of + 4));
    place = place.substr(0, at);
  }
  const size_t colon = place.rfind(':');
  frame->file = place.substr(0, colon);
  if (colon != std::string_view::npos) frame->line = NumberIn(place.substr(colon + 1));
}

}  // namespace

std::string PythonFrame::Name() const {
  return line > 0 ? fmt::format("{} ({}:{})", function, file, line)
                  : fmt::format("{} ({})", function, file);
}

std::vector<PythonFrame> FramesOf(std::string_view folded) {
  std::vector<PythonFrame> frames;
  while (!folded.empty()) {
    const size_t end = std::min(folded.find(';'), folded.size());
    const std::string_view text = folded.substr(0, end);
    folded.remove_prefix(std::min(folded.size(), end + 1));
    const size_t open = text.rfind(" (");
    if (open == std::string_view::npos || !text.ends_with(')')) continue;
    PythonFrame frame;
    frame.function = text.substr(0, open);
    ReadPlace(text.substr(open + 2, text.size() - open - 3), &frame);
    frames.push_back(frame);
  }
  return frames;
}

const PythonFrame* InnermostOwn(const std::vector<PythonFrame>& frames, size_t first) {
  for (size_t i = frames.size(); i-- > first;) {
    if (frames[i].is_own) return &frames[i];
  }
  return nullptr;
}

bool IsLoader(const PythonFrame& frame) {
  constexpr std::string_view kFolders[] = {"torch/utils/data/",
                                           "headrace/_batches.py",
                                           "torchdata/",
                                           "tensorflow/python/data/",
                                           "keras/src/trainers/data_adapters/",
                                           "ray/data/",
                                           "webdataset/",
                                           "litdata/",
                                           "streaming/base/",
                                           "accelerate/data_loader.py",
                                           "fastai/data/load.py",
                                           "torch_geometric/loader/",
                                           "torchrl/data/replay_buffers/",
                                           "monai/data/dataloader.py",
                                           "ultralytics/data/",
                                           "grain/_src/",
                                           "spdl/pipeline/",
                                           "petastorm/",
                                           "h5py/_hl/dataset.py"};
  if (IsInAny(frame, kFolders)) return true;
  // Of Hugging Face's only what iterates: map() and its like run before the training.
  constexpr std::string_view kDatasets[] = {"datasets/arrow_dataset.py",
                                            "datasets/iterable_dataset.py"};
  return IsInAny(frame, kDatasets) &&
         (frame.function.ends_with("__iter__") || frame.function.ends_with("__next__") ||
          Contains(frame.function, "__getitem"));
}

bool HandsOver(const PythonFrame& frame) {
  constexpr std::string_view kQueues[] = {"multiprocessing/queues.py", "queue.py"};
  if (IsInAny(frame, kQueues)) return frame.function.ends_with("get");
  if (IsIn(frame, "multiprocessing/pool.py")) {
    return frame.function.ends_with("next") || frame.function.ends_with(".get");
  }
  return IsIn(frame, "concurrent/futures/_base.py") &&
         (Contains(frame.function, "result") || Contains(frame.function, "wait"));
}

bool CallsBack(const PythonFrame& frame) {
  constexpr std::string_view kFolders[] = {"keras/src/callbacks/", "lightning/pytorch/callbacks/",
                                           "pytorch_lightning/callbacks/",
                                           "transformers/trainer_callback.py"};
  if (IsInAny(frame, kFolders)) return true;
  constexpr std::string_view kHooks[] = {"lightning/pytorch/trainer/call.py",
                                         "pytorch_lightning/trainer/call.py"};
  return IsInAny(frame, kHooks) && Contains(frame.function, "callback");
}

bool IsStep(const PythonFrame& frame) {
  if (frame.is_own) return false;
  constexpr std::string_view kFolders[] = {"torch/nn/modules/",
                                           "torch/nn/parallel/",
                                           "torch/autograd/",
                                           "torch/optim/",
                                           "torch/_dynamo/eval_frame.py",
                                           "torch/distributed/",
                                           "torchmetrics/",
                                           "sklearn/metrics/",
                                           "sklearn/linear_model/",
                                           "sklearn/neural_network/",
                                           "sklearn/cluster/",
                                           "sklearn/ensemble/",
                                           "sklearn/naive_bayes.py",
                                           "optax/",
                                           "flax/",
                                           "jax/_src/pjit.py",
                                           "jax/_src/api.py",
                                           "tensorflow/python/eager/backprop.py",
                                           "tensorflow/python/eager/polymorphic_function/",
                                           "keras/src/optimizers/",
                                           "keras/src/layers/"};
  if (IsInAny(frame, kFolders) || CallsBack(frame)) return true;
  if (IsIn(frame, "torch/_tensor.py")) return frame.function.ends_with("backward");
  constexpr std::string_view kBoosters[] = {"xgboost/core.py", "lightgbm/basic.py"};
  if (IsInAny(frame, kBoosters)) return frame.function.ends_with("update");
  constexpr std::string_view kKeras[] = {"keras/src/backend/", "keras/src/trainers/trainer.py"};
  return IsInAny(frame, kKeras) &&
         (Contains(frame.function, "train_step") || Contains(frame.function, "test_step"));
}

bool Validates(const PythonFrame& frame) {
  constexpr std::string_view kTrainers[] = {"transformers/trainer.py", "lightning/pytorch/loops/",
                                            "pytorch_lightning/loops/", "ultralytics/engine/"};
  constexpr std::string_view kWords[] = {"evaluate", "evaluation", "eval", "validate",
                                         "validation"};
  constexpr std::string_view kTrains[] = {"train", "training", "fit", "step", "update"};
  const auto is_in = [](const std::string& word, const auto& words) {
    return std::find(std::begin(words), std::end(words), word) != std::end(words);
  };
  const auto says = [&](const std::string& word) { return is_in(word, kWords); };
  const std::vector<std::string> method =
      WordsOf(frame.function.substr(frame.function.rfind('.') + 1));
  if (method.empty()) return false;
  if (frame.is_own) {
    // "train_and_evaluate" does both.
    const bool trains = std::any_of(method.begin(), method.end(),
                                    [&](const std::string& word) { return is_in(word, kTrains); });
    const bool tests = method.front() == "val" || (method.size() == 1 && method.front() == "test");
    return !trains && (tests || std::any_of(method.begin(), method.end(), says));
  }
  // A library's "_maybe_log_save_evaluate" does other things, too; its "_EvaluationLoop.run" none.
  return IsInAny(frame, kTrainers) &&
         (says(method.front()) || says(WordsOf(frame.function).front()));
}

bool IsDataLibrary(const PythonFrame& frame) {
  if (frame.is_own) return false;
  constexpr std::string_view kFolders[] = {"PIL/",
                                           "torchvision/transforms/",
                                           "torchvision/io/",
                                           "torchaudio/",
                                           "albumentations/",
                                           "imageio/",
                                           "skimage/",
                                           "librosa/",
                                           "soundfile.py",
                                           "gzip.py",
                                           "bz2.py",
                                           "lzma.py",
                                           "zipfile.py",
                                           "zipfile/",
                                           "tarfile.py",
                                           "csv.py",
                                           "codecs.py",
                                           "encodings/",
                                           "pyarrow/",
                                           "pandas/io/",
                                           "numpy/lib/npyio.py",
                                           "numpy/lib/_npyio_impl.py",
                                           "numpy/lib/format.py",
                                           "numpy/lib/_format_impl.py",
                                           "h5py/",
                                           "zarr/",
                                           "numcodecs/",
                                           "sqlite3/",
                                           "fsspec/",
                                           "s3fs/",
                                           "boto3/",
                                           "botocore/",
                                           "urllib/",
                                           "urllib3/",
                                           "requests/",
                                           "http/client.py",
                                           "datasets/",
                                           "tokenizers/",
                                           "transformers/tokenization_utils",
                                           "transformers/data/data_collator.py",
                                           "transformers/image_processing",
                                           "sklearn/feature_extraction/",
                                           "sklearn/preprocessing/",
                                           "sentencepiece/",
                                           "nltk/",
                                           "spacy/"};
  return IsInAny(frame, kFolders);
}

NameSays WhatNameSays(std::string_view function) {
  constexpr std::string_view kLoads[] = {
      "load",     "loads",    "loader",     "read",    "reads",     "reader",
      "fetch",    "sample",   "sampler",    "samples", "batch",     "batches",
      "batched",  "collate",  "decode",     "augment", "tokenize",  "tokenise",
      "parse",    "prepare",  "preprocess", "pad",     "featurize", "featurise",
      "getitem",  "getitems", "prefetch",   "shuffle", "crop",      "resize",
      "download", "unpack",   "chunks",     "rows",    "records",   "stream"};
  constexpr std::string_view kSteps[] = {
      "train",    "training",  "step",       "forward", "backward", "loss",     "optimize",
      "optimise", "optimizer", "update",     "fit",     "grad",     "gradient", "gradients",
      "evaluate", "validate",  "validation", "predict", "metric",   "metrics",  "model",
      "learn",    "eval",      "accuracy",   "score",   "infer",    "net"};
  const size_t dot = function.rfind('.');
  const std::string_view name = dot == std::string_view::npos ? function : function.substr(dot + 1);
  bool loads = false, steps = false;
  for (const std::string& word : WordsOf(name)) {
    loads |= std::find(std::begin(kLoads), std::end(kLoads), word) != std::end(kLoads);
    steps |= std::find(std::begin(kSteps), std::end(kSteps), word) != std::end(kSteps);
  }
  // "train_batch" is a step: what it is done to comes after the verb.
  if (steps && loads) {
    const std::vector<std::string> words = WordsOf(name);
    loads = std::find(std::begin(kSteps), std::end(kSteps), words.front()) == std::end(kSteps) &&
            std::find(std::begin(kLoads), std::end(kLoads), words.front()) != std::end(kLoads);
    steps = !loads;
  }
  return loads ? NameSays::kLoads : steps ? NameSays::kSteps : NameSays::kNothing;
}

bool SaysItWrites(const PythonFrame& frame) {
  constexpr std::string_view kWords[] = {"save",     "savez",     "write",      "writes", "writer",
                                         "dump",     "dumps",     "log",        "logs",   "logger",
                                         "writerow", "writerows", "checkpoint", "upload", "post",
                                         "put",      "export",    "report"};
  const size_t dot = frame.function.rfind('.');
  const auto words = WordsOf(frame.function.substr(dot == std::string_view::npos ? 0 : dot + 1));
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
  });
}

std::vector<PythonFrame>::const_iterator FirstWriter(const std::vector<PythonFrame>& frames,
                                                     size_t first) {
  return std::find_if(frames.begin() + static_cast<std::ptrdiff_t>(first), frames.end(),
                      [](const PythonFrame& frame) {
                        return SaysItWrites(frame) || WritingOf(frame) != Writing::kNone;
                      });
}

Writing WritingOf(const PythonFrame& frame) {
  constexpr std::string_view kKeeps[] = {"save", "saves", "savez", "savefig", "dump", "checkpoint"};
  constexpr std::string_view kTells[] = {"log",     "logs",   "write", "writerow", "writerows",
                                         "report",  "upload", "add",   "draw",     "plot",
                                         "savefig", "emit",   "scalar"};
  constexpr std::string_view kReporters[] = {"logging/__init__.py",
                                             "csv.py",
                                             "wandb/",
                                             "mlflow/",
                                             "comet_ml/",
                                             "neptune/",
                                             "aim/sdk/",
                                             "clearml/",
                                             "tensorboard/",
                                             "tensorboardX/",
                                             "torch/utils/tensorboard/",
                                             "tensorflow/python/ops/summary_ops_v2.py",
                                             "lightning/pytorch/loggers/",
                                             "lightning/fabric/loggers/",
                                             "pytorch_lightning/loggers/",
                                             "matplotlib/"};
  // Recomputes layers in the backward pass.
  constexpr std::string_view kOtherCheckpoints[] = {"torch/utils/checkpoint.py", "deepspeed/"};
  // "restore_checkpoint" reads, and "train_and_save" does other things, too.
  constexpr std::string_view kOthers[] = {"load", "loads", "restore",  "resume", "read",
                                          "find", "train", "training", "fit",    "step"};
  const auto words = WordsOf(frame.function.substr(frame.function.rfind('.') + 1));
  const auto has = [&](const auto& of) {
    return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return std::find(std::begin(of), std::end(of), word) != std::end(of);
    });
  };
  if (words.empty() || has(kOthers)) return Writing::kNone;
  if (frame.is_own) return has(kKeeps) ? Writing::kSaves : Writing::kNone;
  if (IsInAny(frame, kReporters)) return has(kTells) ? Writing::kReports : Writing::kNone;
  // A library's "_maybe_log_save_evaluate" does other things, too.
  const bool keeps = std::find(std::begin(kKeeps), std::end(kKeeps), words[0]) != std::end(kKeeps);
  return keeps && !IsInAny(frame, kOtherCheckpoints) ? Writing::kSaves : Writing::kNone;
}

bool Compiles(const PythonFrame& frame) {
  // Of torch all of it is below convert_frame; other files of its compiler run what it has made.
  constexpr std::string_view kFiles[] = {"jax/_src/compiler.py", "jax/_src/interpreters/mlir.py",
                                         "jax/_src/interpreters/partial_eval.py",
                                         "tensorflow/python/framework/func_graph.py",
                                         "torch/_dynamo/convert_frame.py"};
  return IsInAny(frame, kFiles);
}

bool Waits(const std::vector<PythonFrame>& frames) {
  constexpr std::string_view kFiles[] = {"selectors.py",
                                         "threading.py",
                                         "socket.py",
                                         "ssl.py",
                                         "multiprocessing/synchronize.py",
                                         "subprocess.py",
                                         "queue.py",
                                         "ray/_private/worker.py"};
  const PythonFrame& last = frames.back();
  if (IsInAny(last, kFiles)) return true;
  if (IsIn(last, "multiprocessing/connection.py")) {
    // What it received it unpickles in C; until it has received, it is in a function below.
    if (last.function == "recv" || last.function.ends_with(".recv")) return false;
    // What a batch's own parts are asked for is of unpacking it.
    return std::none_of(frames.begin(), frames.end(), [](const PythonFrame& frame) {
      return Contains(frame.function, "rebuild_");
    });
  }
  // tf.data makes batches in threads of its own, and Ray Data in processes.
  return Contains(last.function, "iterator_get_next") ||
         Contains(last.function, "get_output_blocking");
}

bool ReceivesBytes(const std::vector<PythonFrame>& frames) {
  const PythonFrame& last = frames.back();
  return IsIn(last, "multiprocessing/connection.py") && Contains(last.function, "recv");
}

bool TakesTask(const std::vector<PythonFrame>& frames) {
  const PythonFrame& last = frames.back();
  if (!IsIn(last, "multiprocessing/queues.py") || !last.function.ends_with("Queue.get"))
    return false;
  return std::any_of(frames.begin(), frames.end(), [](const PythonFrame& frame) {
    return (IsIn(frame, "concurrent/futures/process.py") && frame.function == "_process_worker") ||
           (IsIn(frame, "multiprocessing/pool.py") && frame.function == "worker");
  });
}

bool IsIdle(const std::vector<PythonFrame>& frames) {
  const PythonFrame& last = frames.back();
  // Both ask a queue that is written in C. What a Pool's thread does with a task is in functions of
  // its own.
  const bool of_pool =
      (IsIn(last, "concurrent/futures/thread.py") && last.function == "_worker") ||
      (IsIn(last, "multiprocessing/pool.py") && last.function.ends_with("_handle_tasks"));
  return of_pool || Waits(frames);
}

void LeaveParent(std::vector<PythonFrame>* frames) {
  // A class of the program's may have a run() of its own.
  const auto last = std::find_if(frames->rbegin(), frames->rend(), [](const PythonFrame& frame) {
    return IsIn(frame, "multiprocessing/process.py") &&
           (frame.function.ends_with("run") || frame.function.ends_with("_bootstrap"));
  });
  if (last == frames->rend() || last == frames->rbegin()) return;
  frames->erase(frames->begin(), last.base());
}

bool StartsProcess(const std::vector<PythonFrame>& frames) {
  constexpr std::string_view kFiles[] = {
      "multiprocessing/process.py", "multiprocessing/popen_fork.py",
      "multiprocessing/popen_spawn_posix.py", "multiprocessing/popen_forkserver.py"};
  return std::any_of(frames.begin(), frames.end(),
                     [&](const PythonFrame& frame) { return IsInAny(frame, kFiles); });
}

bool IsImport(const std::vector<PythonFrame>& frames) {
  return std::any_of(frames.begin(), frames.end(), [](const PythonFrame& frame) {
    return frame.function == "_find_and_load" || frame.function == "_handle_fromlist";
  });
}

std::string OwnName(const std::string& thread) {
  constexpr std::string_view kBefore = "Thread (";
  if (!thread.starts_with(kBefore) || !thread.ends_with(')')) return thread;
  return thread.substr(kBefore.size(), thread.size() - kBefore.size() - 1);
}

bool TakesAndTrains(const std::vector<PythonFrame>& frames) {
  const auto fit = std::find_if(frames.begin(), frames.end(), [](const PythonFrame& frame) {
    return IsIn(frame, "keras/src/backend/tensorflow/trainer.py");
  });
  return fit != frames.end() && std::none_of(fit, frames.end(), CallsBack);
}

bool IsAside(const std::vector<PythonFrame>& frames) {
  if (IsImport(frames)) return true;
  return std::any_of(frames.begin(), frames.end(), [&](const PythonFrame& frame) {
    if (IsIn(frame, "datasets/arrow_dataset.py") &&
        (frame.function.ends_with(".map") || frame.function.ends_with(".filter"))) {
      return true;
    }
    // A copy to a device waits for what that computes.
    return Contains(frame.function, "send_to_device");
  });
}

namespace {

// A collate_fn may be called anything, or be an object that is called. What takes items by their
// index calls nothing else but the data set's __getitem__ or __getitems__, which may be decorated.
bool CollatesByAnyName(const std::vector<PythonFrame>& frames) {
  const auto fetch = std::find_if(frames.begin(), frames.end(), [](const PythonFrame& frame) {
    return Contains(frame.file, "_utils/fetch.py") &&
           Contains(frame.function, "MapDatasetFetcher.fetch");
  });
  if (fetch == frames.end()) return false;
  for (auto called = fetch + 1; called != frames.end(); ++called) {
    if (Contains(called->function, "__getitem")) return false;
    const bool wraps = Contains(called->function, "<locals>") ||
                       Contains(called->file, "contextlib.py") ||
                       Contains(called->file, "functools.py");
    if (!wraps) break;
  }
  return fetch + 1 != frames.end() && !Contains(fetch[1].file, "_utils/fetch.py");
}

}  // namespace

const char* OperatorOf(const std::vector<PythonFrame>& frames, size_t first) {
  const auto any = [&](auto matches) {
    return std::any_of(frames.begin() + static_cast<std::ptrdiff_t>(first), frames.end(), matches);
  };
  const auto in_file = [&](std::string_view file) {
    return any([&](const PythonFrame& frame) { return Contains(frame.file, file); });
  };
  const auto in_function = [&](std::string_view name) {
    return any([&](const PythonFrame& frame) { return Contains(frame.function, name); });
  };
  if (StartsProcess(frames)) return "start_workers";
  if (in_function("_next_index") || in_file("torch/utils/data/sampler.py")) return "sampler";
  if (in_function("collate") || in_file("_utils/collate.py")) return "collate";
  if (CollatesByAnyName(frames)) return "collate";
  // As the import hook names them: an iterable data set has no items.
  if (in_function("IterableDatasetFetcher.fetch")) return "next";
  if (in_file("_utils/fetch.py")) return "getitem";
  if (in_file("_utils/pin_memory.py")) return "pin_memory";
  if (in_file("multiprocessing/reduction") || in_file("multiprocessing/queues.py")) {
    return "unpickle";
  }
  return "next";
}

}  // namespace headrace::analysis
