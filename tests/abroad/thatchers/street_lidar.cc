// Finds kerbs in laser scans of streets: each scan goes into a grid of voxels, a linear model
// learns from the cells.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

constexpr int kWide = 512;
constexpr int kHigh = 48;
constexpr int kPoints = 20000;

struct Point {
  float x, y, z;
};

// How many points lie in each cell.
class Voxels {
 public:
  Voxels() : cells_(size_t{kWide} * kWide * kHigh) {}

  void Add(const Point& point) {
    const size_t cell = Cell(point);
    if (cells_[cell] == 0) filled_.push_back(cell);
    cells_[cell] += 1;
  }

  void Clear() {
    for (size_t cell : filled_) cells_[cell] = 0;
    filled_.clear();
  }

  float At(size_t cell) const { return cell < cells_.size() ? cells_[cell] : 0; }
  const std::vector<size_t>& filled() const { return filled_; }

 private:
  static size_t Cell(const Point& point) {
    const auto along = [](float value, int cells) {
      return static_cast<size_t>(std::clamp(static_cast<int>(value * cells), 0, cells - 1));
    };
    return (along(point.z, kHigh) * kWide + along(point.y, kWide)) * kWide + along(point.x, kWide);
  }

  std::vector<float> cells_;
  std::vector<size_t> filled_;
};

std::vector<Point> Street(std::mt19937& random) {
  std::uniform_real_distribution<float> place(0, 1);
  std::vector<Point> points(kPoints);
  for (Point& point : points) {
    point.x = place(random);
    point.y = place(random);
    point.z = point.y < 0.3f ? 0.12f : 0.1f + 0.5f * place(random) * (place(random) < 0.1f);
  }
  return points;
}

class Kerbs {
 public:
  void Step(const Voxels& voxels) {
    std::array<float, 5> slope{};
    for (size_t cell : voxels.filled()) {
      const std::array<float, 5> near = {voxels.At(cell), voxels.At(cell + 1),
                                         voxels.At(cell + kWide),
                                         voxels.At(cell + size_t{kWide} * kWide), 1};
      const bool kerb = cell / kWide % kWide < kWide * 3 / 10;
      float sum = 0;
      for (size_t i = 0; i < near.size(); ++i) sum += weights_[i] * near[i];
      const float miss = 1 / (1 + std::exp(-sum)) - kerb;
      for (size_t i = 0; i < near.size(); ++i) slope[i] += miss * near[i];
    }
    for (size_t i = 0; i < slope.size(); ++i)
      weights_[i] -= 0.5f * slope[i] / voxels.filled().size();
  }

 private:
  std::array<float, 5> weights_{};
};

void Learn(Kerbs& kerbs, Voxels& voxels, const std::vector<Point>& scan) {
  for (const Point& point : scan) voxels.Add(point);
  kerbs.Step(voxels);
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 6;
  bool fix = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--fix")) fix = true;
    if (!std::strcmp(argv[i], "--seconds") && i + 1 < argc) seconds = std::atof(argv[++i]);
  }
  std::mt19937 random(3);
  std::vector<std::vector<Point>> scans;
  for (int i = 0; i < 40; ++i) scans.push_back(Street(random));
  Kerbs kerbs;
  Voxels kept;
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const double warm = std::min(1.0, seconds / 5);
  double since = 0;
  long done = 0, skipped = 0;
  while (passed() < seconds) {
    const std::vector<Point>& scan = scans[random() % scans.size()];
    if (fix) {
      kept.Clear();
      Learn(kerbs, kept, scan);
    } else {
      Voxels voxels;
      Learn(kerbs, voxels, scan);
    }
    ++done;
    if (since == 0 && passed() >= warm) since = passed(), skipped = done;
  }
  std::printf("rate %.3f batches/s\n", (done - skipped) / (passed() - since));
}
