// Level of detail: what a lane looks like from afar. A pixel that stands for many slices shows their shares of its time,
// stacked in the order of the palette, idle on top.
//
// Level 0 cuts the whole time into bins and has the share of each paint in each; every further level halves their
// number. A picture that is finer than the bins counts slices; any other averages a few bins for each pixel, however
// many slices there are.

const MOST_BINS = 8192;
const LEAST_BINS = 64;

function rgbOf(colour) {
  return [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
}

// Of a paint as a pixel of a canvas: red, green, blue, opaque, least significant first. Stripes are the mean of theirs.
function pixelOf(paint) {
  const base = rgbOf(colourOf(paint));
  const hatch = hatchOf(paint);
  const [red, green, blue] = hatch ? rgbOf(hatch).map((value, i) => Math.round(0.4 * value + 0.6 * base[i])) : base;
  return (0xff000000 | blue << 16 | green << 8 | red) >>> 0;
}

// Adds what a lane does in [from, to) to `count` equal parts of it: `layers` shares for each part. `layerOf`: by label.
function addSlices(sums, lane, layerOf, layers, from, to, count) {
  const scale = count / (to - from);
  for (let i = sliceAfter(lane, from); i < lane.start.length && lane.start[i] < to; ++i) {
    const begin = Math.max(0, (lane.start[i] - from) * scale);
    const end = Math.min(count, (lane.end[i] - from) * scale);
    const layer = layerOf[lane.label[i]];
    for (let part = Math.floor(begin); part < end; ++part)
      sums[layers * part + layer] += Math.min(end, part + 1) - Math.max(begin, part);
  }
}

function buildLevels(lane, layerOf, layers, whole) {
  let bins = LEAST_BINS;
  while (bins < MOST_BINS && bins * 4 < lane.start.length) bins *= 2;
  let level = new Float32Array(layers * bins);
  addSlices(level, lane, layerOf, layers, 0, whole, bins);
  lane.levels = [level];
  for (; bins > LEAST_BINS; bins /= 2) {
    const coarser = new Float32Array(layers * bins / 2);
    for (let i = 0; i < bins / 2; ++i)
      for (let c = 0; c < layers; ++c)
        coarser[layers * i + c] = (level[2 * layers * i + c] + level[2 * layers * i + layers + c]) / 2;
    lane.levels.push(coarser);
    level = coarser;
  }
}

// The same sums from the coarsest level whose bins are no longer than a part.
function addLevels(sums, lane, layers, from, to, count, whole) {
  const part = (to - from) / count;
  let level = lane.levels[0];
  for (const coarser of lane.levels)
    if (whole * layers / coarser.length <= part) level = coarser;
  const bins = level.length / layers;
  for (let i = 0; i < count; ++i) {
    const first = (from + i * part) / whole * bins;
    const last = (from + (i + 1) * part) / whole * bins;
    const end = Math.min(last, bins);
    for (let bin = Math.floor(first); bin < end; ++bin) {
      const share = (Math.min(last, bin + 1) - Math.max(first, bin)) / (last - first);
      for (let c = 0; c < layers; ++c) sums[layers * i + c] += share * level[layers * bin + c];
    }
  }
}

// Fills `height` rows of `width` pixels from row `top` on.
function stackPixels(pixels, width, top, height, sums, colours, back) {
  const layers = colours.length;
  for (let x = 0; x < width; ++x) {
    let share = 0;
    let y = height;
    for (let c = 0; c < layers; ++c) {
      share += sums[layers * x + c];
      const until = Math.max(0, Math.round(height * (1 - share)));
      while (y > until) pixels[(top + --y) * width + x] = colours[c];
    }
    while (y > 0) pixels[(top + --y) * width + x] = back;
  }
}
