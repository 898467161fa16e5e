// A packed timeline (sim/view/pack.hpp) as typed arrays: of each lane start, end, label and micro-batch by slice.

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) bytes[i] = text.charCodeAt(i);
  return bytes;
}

class Varints {
  constructor(bytes, at) {
    this.bytes = bytes;
    this.at = at;
  }

  // Beyond 2^32 shifts lose bits: then by multiplication, exact up to 2^53.
  next() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    let scale = 128;
    do {
      byte = bytes[this.at++];
      value += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte >= 0x80);
    return value;
  }

  signed() {
    const value = this.next();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }
}

function decodeLane(packed, bytes, labels) {
  const count = packed.slices;
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  const label = new Uint32Array(count);
  const microBatch = new Int32Array(count).fill(-1);
  const last = new Int32Array(labels.length).fill(-1);
  const used = new Set();
  const numbers = new Varints(bytes, packed.offset);
  let at = 0;
  for (let i = 0; i < count; ++i) {
    const head = numbers.next();
    const which = Math.floor(head / 8);
    if (head & 4) at += numbers.next();
    start[i] = at;
    at += head & 2 ? numbers.next() : labels[which].time_ns;
    end[i] = at;
    label[i] = which;
    if (i === 0 || label[i - 1] !== which) used.add(which);
    if (labels[which].micro_batches) {
      last[which] += head & 1 ? numbers.signed() : 1;
      microBatch[i] = last[which];
    }
  }
  return {rank: packed.rank, name: packed.name, compute: packed.compute, start, end, label, microBatch, used, levels: []};
}

function decodeTimeline(timeline) {
  const bytes = bytesOf(timeline.slices);
  const lanes = timeline.lanes.map(lane => decodeLane(lane, bytes, timeline.labels));
  const numbers = new Varints(bytesOf(timeline.path), 0);
  const pathLane = new Uint32Array(timeline.path_tasks);
  const pathSlice = new Uint32Array(timeline.path_tasks);
  let lane = 0;
  let slice = 0;
  for (let i = 0; i < timeline.path_tasks; ++i) {
    pathLane[i] = lane += numbers.signed();
    pathSlice[i] = slice += numbers.signed();
  }
  return {lanes, labels: timeline.labels, names: timeline.names, end: timeline.end_ns, pathLane, pathSlice};
}

// The first slice that ends after `time`.
function sliceAfter(lane, time) {
  let low = 0;
  let high = lane.end.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (lane.end[middle] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}
