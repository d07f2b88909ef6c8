// SPDX-License-Identifier: Apache-2.0
// Runs every file of a corpus, then made and mutated input for some seconds:
//
//   FUZZER [--seconds=N] [--seed=N] [--save=DIR] CORPUS_DIR|FILE...
//
// Before each made input runs it is in DIR/last-input (default: the temporary folder), so that a
// crash leaves it behind. The seed is printed; the same seed makes the same inputs.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/fuzzer.h"

namespace {

namespace fs = std::filesystem;

std::string ReadAll(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void Run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// Small damage: what a generator that knows the rules does not think of.
void Mutate(std::string* input, std::mt19937_64& random) {
  const auto below = [&](size_t limit) { return static_cast<size_t>(random() % limit); };
  for (size_t edits = below(6); edits > 0 && !input->empty(); --edits) {
    const size_t at = below(input->size());
    switch (below(5)) {
      case 0:
        (*input)[at] = static_cast<char>(random());
        break;
      case 1:
        (*input)[at] = static_cast<char>((*input)[at] ^ (1 << below(8)));
        break;
      case 2:
        input->erase(at, 1 + below(16));
        break;
      case 3:
        input->insert(at, input->substr(below(input->size()), below(64)));
        break;
      default:
        std::memset(input->data() + at, random() % 2 == 0 ? 0xff : 0,
                    std::min<size_t>(8, input->size() - at));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0;
  uint64_t seed = std::random_device()();
  fs::path save = fs::temp_directory_path();
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg.rfind("--seconds=", 0) == 0) {
      seconds = std::atof(arg.c_str() + 10);
    } else if (arg.rfind("--seed=", 0) == 0) {
      seed = std::strtoull(arg.c_str() + 7, nullptr, 10);
    } else if (arg.rfind("--save=", 0) == 0) {
      save = arg.substr(7);
    } else if (fs::is_directory(arg)) {
      for (const auto& entry : fs::directory_iterator(arg)) files.push_back(entry.path());
    } else {
      files.push_back(arg);
    }
  }
  std::vector<std::string> corpus;
  for (const fs::path& file : files) {
    corpus.push_back(ReadAll(file));
    Run(corpus.back());
  }
  std::printf("%zu files of the corpus ran; seed %llu\n", files.size(),
              static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  std::mt19937_64 random(seed);
  const fs::path last = save / (fs::path(argv[0]).filename().string() + "-last-input");
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  size_t runs = 0;
  for (; std::chrono::steady_clock::now() < end; ++runs) {
    std::string input = corpus.empty() || random() % 8 != 0 ? MakeFuzzInput(random)
                                                            : corpus[random() % corpus.size()];
    if (random() % 2 == 0) Mutate(&input, random);
    std::ofstream(last, std::ios::binary | std::ios::trunc) << input;
    Run(input);
  }
  std::error_code error;
  fs::remove(last, error);
  std::printf("%zu inputs ran\n", runs);
  return 0;
}
