// Timelines of one or several runs under each other on one axis of time.
//
//   drag, arrows left and right    move            wheel with Ctrl, + and -    zoom at the pointer, at the middle
//   wheel, arrows up and down      rows            0 or Home                   all of it
//   n and p                        the next and the previous slice, told in words
const GUTTER = 150;
const AXIS = 26;
const HEAD = 24;

class TimelineView {
  constructor(runs) {
    this.sections = runs.map(run => ({run, data: decodeTimeline(run.timeline)}));
    this.end = Math.max(1, ...this.sections.map(section => section.data.end));
    this.from = 0;
    this.to = this.end;
    this.scroll = 0;
    this.showPath = true;
    this.selected = null;
    this.wanted = null;
    this.frame = 0;
    this.layRows();
    this.build();
    this.buildLevels();
    this.recolour();
    redrawn.push(() => this.recolour());
  }

  // Compute lanes are tall, what runs beside them is flat.
  layRows() {
    this.rows = [];
    let y = 0;
    const many = this.sections.reduce((sum, section) => sum + section.data.lanes.length, 0);
    const tall = many > 120 ? 14 : 22;
    for (const section of this.sections) {
      if (this.sections.length > 1) {
        this.rows.push({y, height: HEAD, section, head: true});
        y += HEAD;
      }
      let rank = -1;
      for (const lane of section.data.lanes) {
        if (lane.rank !== rank) y += rank < 0 ? 2 : 3;
        const height = lane.compute ? tall : Math.round(tall * 0.45);
        lane.row = this.rows.length;
        this.rows.push({y, height, section, lane, names: lane.rank !== rank});
        rank = lane.rank;
        y += height + 1;
      }
      y += 8;
    }
    this.height = y;
  }

  build() {
    this.canvas = element('canvas', {tabindex: '0', role: 'img', 'aria-label':
      'Timeline of the simulated ranks. Arrow keys move, plus and minus zoom, n and p step through slices.'});
    this.tip = element('div', {class: 'tip', hidden: ''});
    this.status = element('p', {class: 'status', 'aria-live': 'polite'});
    this.box = element('div', {class: 'timeline'}, this.canvas, this.tip);
    this.pathButton = element('button', {type: 'button', 'aria-pressed': 'true', onclick: () => this.togglePath()}, 'critical path');
    const button = (text, name, action) => element('button', {type: 'button', 'aria-label': name, title: name, onclick: action}, text);
    this.search = element('input', {type: 'number', min: '0', size: '6', 'aria-label': 'highlight a micro-batch', style: {width: '6em'},
      oninput: () => { this.wanted = this.search.value === '' ? null : Number(this.search.value); this.request(); }});
    this.controls = element('div', {class: 'controls'},
      button('+', 'zoom in', () => this.zoom(0.5)), button('−', 'zoom out', () => this.zoom(2)),
      button('all', 'show all of it', () => this.fit()), this.pathButton,
      element('label', {}, 'micro-batch ', this.search),
      element('span', {class: 'muted'}, 'drag moves, Ctrl and wheel zoom, double click zooms in'));
    this.root = element('div', {}, this.controls, this.box, this.status);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.box);
  }

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener('pointerdown', event => {
      canvas.setPointerCapture(event.pointerId);
      this.drag = {x: event.offsetX, y: event.offsetY, from: this.from, to: this.to, scroll: this.scroll};
    });
    canvas.addEventListener('pointermove', event => this.pointerMoved(event));
    for (const name of ['pointerup', 'pointercancel']) canvas.addEventListener(name, () => { this.drag = null; });
    canvas.addEventListener('pointerleave', () => { if (!this.drag) this.tip.hidden = true; });
    canvas.addEventListener('dblclick', event => this.zoom(0.25, this.timeAt(event.offsetX)));
    canvas.addEventListener('wheel', event => this.wheel(event), {passive: false});
    canvas.addEventListener('keydown', event => this.key(event));
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * 0.004), this.timeAt(event.offsetX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan((event.deltaX || event.deltaY) / this.plot() * (this.to - this.from));
    } else if (this.height > this.view()) {
      const before = this.scroll;
      this.scrollTo(this.scroll + event.deltaY);
      if (this.scroll !== before) event.preventDefault();
    }
  }

  key(event) {
    const span = this.to - this.from;
    const actions = {
      ArrowLeft: () => this.pan(-span / 8), ArrowRight: () => this.pan(span / 8), a: () => this.pan(-span / 8), d: () => this.pan(span / 8),
      ArrowUp: () => this.scrollTo(this.scroll - 60), ArrowDown: () => this.scrollTo(this.scroll + 60),
      '+': () => this.zoom(0.5), '=': () => this.zoom(0.5), w: () => this.zoom(0.5), '-': () => this.zoom(2), s: () => this.zoom(2),
      0: () => this.fit(), Home: () => this.fit(), c: () => this.togglePath(), n: () => this.step(1), p: () => this.step(-1),
      Escape: () => { this.tip.hidden = true; this.selected = null; this.request(); },
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  pointerMoved(event) {
    if (this.drag) {
      const moved = (this.drag.x - event.offsetX) / this.plot() * (this.drag.to - this.drag.from);
      this.show(this.drag.from + moved, this.drag.to + moved);
      this.scrollTo(this.drag.scroll + this.drag.y - event.offsetY);
      this.tip.hidden = true;
      return;
    }
    this.hover(event.offsetX, event.offsetY);
  }

  plot() { return Math.max(50, this.width - GUTTER); }
  view() { return this.shown - AXIS; }
  timeAt(x) { return this.from + (x - GUTTER) / this.plot() * (this.to - this.from); }
  xOf(time) { return GUTTER + (time - this.from) / (this.to - this.from) * this.plot(); }

  // At least 100 ns, at most all of it.
  show(from, to) {
    const span = Math.min(this.end, Math.max(100, to - from));
    const begin = Math.min(Math.max(0, from), this.end - span);
    this.from = begin;
    this.to = begin + span;
    this.request();
  }

  pan(time) { this.show(this.from + time, this.to + time); }
  fit() { this.show(0, this.end); }
  zoom(factor, about = (this.from + this.to) / 2) {
    const span = Math.min(this.end, Math.max(100, (this.to - this.from) * factor));
    const share = (about - this.from) / (this.to - this.from);
    this.show(about - share * span, about + (1 - share) * span);
  }
  scrollTo(y) {
    this.scroll = Math.min(Math.max(0, this.height - this.view()), Math.max(0, y));
    this.request();
  }
  togglePath() {
    this.showPath = !this.showPath;
    this.pathButton.setAttribute('aria-pressed', String(this.showPath));
    this.request();
  }

  resize() {
    this.width = this.box.clientWidth;
    if (this.width === 0) return;
    this.shown = AXIS + Math.min(this.height, 760);
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.shown * ratio);
    this.canvas.style.height = this.shown + 'px';
    this.draw();
  }

  // Shares of time do not depend on colours: built once.
  buildLevels() {
    for (const section of this.sections) {
      const {labels, lanes} = section.data;
      section.paints = [...new Set(lanes.flatMap(lane => [...lane.used]).map(label => labels[label].paint))].sort((a, b) => a - b);
      const layerOf = labels.map(label => section.paints.indexOf(label.paint));
      section.layerOf = layerOf;
      for (const lane of lanes) buildLevels(lane, layerOf, section.paints.length, this.end);
    }
  }

  recolour() {
    for (const section of this.sections) section.pixels = Uint32Array.from(section.paints, pixelOf);
    this.stripes = new Map();
    this.theme = {line: variable('--line'), fg: variable('--fg'), muted: variable('--muted'), back: variable('--bg'), path: variable('--path')};
    if (this.width) this.draw();
  }

  request() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => { this.frame = 0; this.draw(); });
  }

  draw() {
    const context = this.canvas.getContext('2d');
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.theme.back;
    context.fillRect(0, 0, this.width, this.shown);
    this.drawAxis(context);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, this.width, this.view());
    context.clip();
    context.translate(0, AXIS - this.scroll);
    const rows = this.rows.filter(row => row.y + row.height > this.scroll && row.y < this.scroll + this.view());
    this.drawFar(context, rows.filter(row => row.lane && this.isDense(row.lane)));
    for (const row of rows) this.drawRow(context, row);
    if (this.showPath) for (const section of this.sections) this.drawPath(context, section);
    this.drawSelected(context);
    context.restore();
    this.drawScrollbar(context);
  }

  drawAxis(context) {
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    const last = Math.max(Math.abs(this.from), Math.abs(this.to));
    for (const time of ticks(this.from, this.to, this.plot() / 110)) {
      const x = Math.round(this.xOf(time)) + 0.5;
      context.strokeStyle = this.theme.line;
      context.beginPath();
      context.moveTo(x, AXIS - 5);
      context.lineTo(x, this.shown);
      context.stroke();
      context.fillStyle = this.theme.muted;
      const near = this.to - this.from < last / 1e4;
      const text = near && time > this.from ? '+' + humanTime(time - this.from) : humanTime(time);
      const width = context.measureText(text).width;
      context.fillText(text, Math.min(x + 3, this.width - width - 2), 11);
    }
  }

  // More slices in sight than a row of pixels can show one by one.
  isDense(lane) {
    const first = sliceAfter(lane, this.from);
    return sliceAfter(lane, this.to) - first > this.plot() * 0.8;
  }

  // Lanes with more slices than pixels: drawn pixel by pixel, and put in their places.
  drawFar(context, rows) {
    if (rows.length === 0) return;
    const width = Math.round(this.plot());
    const height = rows.reduce((sum, row) => sum + row.height, 0);
    if (!this.strip || this.strip.width !== width || this.strip.height < height) {
      this.strip = element('canvas', {width: String(width), height: String(height)});
      this.stripContext = this.strip.getContext('2d', {willReadFrequently: true});
      this.image = this.stripContext.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    const [red, green, blue] = rgbOf(this.theme.back);
    const back = (0xff000000 | blue << 16 | green << 8 | red) >>> 0;
    let top = 0;
    for (const row of rows) {
      const layers = row.section.paints.length;
      const sums = new Float32Array(layers * width);
      const finest = this.end * layers / row.lane.levels[0].length;
      if ((this.to - this.from) / width >= finest) addLevels(sums, row.lane, layers, this.from, this.to, width, this.end);
      else addSlices(sums, row.lane, row.section.layerOf, layers, this.from, this.to, width);
      stackPixels(this.pixels, width, top, row.height, sums, row.section.pixels, back);
      top += row.height;
    }
    this.stripContext.putImageData(this.image, 0, 0, 0, 0, width, height);
    context.imageSmoothingEnabled = false;
    top = 0;
    for (const row of rows) {
      context.drawImage(this.strip, 0, top, width, row.height, GUTTER, row.y, width, row.height);
      top += row.height;
    }
  }

  drawRow(context, row) {
    if (row.head) {
      context.fillStyle = this.theme.fg;
      context.font = '600 13px system-ui, sans-serif';
      context.textBaseline = 'middle';
      context.fillText(`${row.section.run.title || row.section.run.name}   ${humanTime(row.section.data.end)}`, 6, row.y + HEAD / 2);
      return;
    }
    if (!this.isDense(row.lane)) this.drawNear(context, row);
    context.fillStyle = this.theme.back;
    context.fillRect(0, row.y, GUTTER - 4, row.height);
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    const beside = row.lane.compute || row.height >= 12;
    if (row.names || beside) {
      context.fillStyle = row.names ? this.theme.fg : this.theme.muted;
      const name = row.names ? row.section.data.names[row.lane.rank] : row.lane.name;
      context.fillText(name, 6, row.y + row.height / 2, GUTTER - 14);
    } else {
      context.font = '9px system-ui, sans-serif';
      context.fillStyle = this.theme.muted;
      context.fillText(row.lane.name, 22, row.y + row.height / 2, GUTTER - 30);
    }
  }

  drawNear(context, row) {
    const lane = row.lane;
    const labels = row.section.data.labels;
    context.save();
    context.beginPath();
    context.rect(GUTTER, row.y, this.plot(), row.height);
    context.clip();
    for (let i = sliceAfter(lane, this.from); i < lane.start.length && lane.start[i] < this.to; ++i) {
      const label = labels[lane.label[i]];
      const x = this.xOf(lane.start[i]);
      const width = this.xOf(lane.end[i]) - x;
      context.globalAlpha = this.wanted !== null && label.paint < BUBBLE && lane.microBatch[i] !== this.wanted ? 0.18 : 1;
      context.fillStyle = this.fill(context, label.paint);
      context.fillRect(x, row.y, width > 3 ? width - 1 : Math.max(width, 0.6), row.height);
      if (width > 13 && row.height >= 13) this.drawWords(context, row, label, lane.microBatch[i], x, width);
    }
    context.globalAlpha = 1;
    context.restore();
  }

  drawWords(context, row, label, microBatch, x, width) {
    const short = label.name;
    const number = microBatch >= 0 ? String(microBatch) : '';
    const stage = label.stage !== undefined ? `  stage ${label.stage}` : '';
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    const left = Math.max(x, GUTTER);
    const right = Math.min(x + width, this.width);
    for (const text of [`${short} ${number}${stage}`.trim(), `${short} ${number}`.trim(), short + number, short, number]) {
      const wide = context.measureText(text).width;
      if (text === '' || wide > right - left - 5) continue;
      if (label.paint >= BUBBLE) {
        context.fillStyle = colourOf(label.paint);
        context.fillRect((left + right - wide) / 2 - 3, row.y + 2, wide + 6, row.height - 4);
      }
      context.fillStyle = textOn(label.paint);
      context.fillText(text, Math.max(left + 2, (left + right - wide) / 2), row.y + row.height / 2 + 0.5);
      return;
    }
  }

  fill(context, paint) {
    const hatch = hatchOf(paint);
    if (!hatch) return colourOf(paint);
    if (!this.stripes.has(paint)) {
      const size = paint === EXPOSED ? 6 : 8;
      const tile = element('canvas', {width: String(size), height: String(size)});
      const inner = tile.getContext('2d');
      inner.fillStyle = colourOf(paint);
      inner.fillRect(0, 0, size, size);
      inner.strokeStyle = hatch;
      inner.lineWidth = paint === EXPOSED ? 2 : 1;
      for (const shift of [-size, 0, size]) {
        inner.beginPath();
        inner.moveTo(shift, size);
        inner.lineTo(shift + size, 0);
        inner.stroke();
      }
      this.stripes.set(paint, context.createPattern(tile, 'repeat'));
    }
    return this.stripes.get(paint);
  }

  // The tasks that nothing can be taken from without ending earlier, and how one leads to the next.
  drawPath(context, section) {
    const {lanes, pathLane, pathSlice} = section.data;
    const startOf = i => lanes[pathLane[i]].start[pathSlice[i]];
    const endOf = i => lanes[pathLane[i]].end[pathSlice[i]];
    let low = 0;
    let high = pathLane.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (endOf(middle) >= this.from) high = middle;
      else low = middle + 1;
    }
    context.save();
    context.beginPath();
    context.rect(GUTTER, 0, this.plot(), this.height);
    context.clip();
    context.strokeStyle = this.theme.path;
    context.lineWidth = 2;
    context.beginPath();
    let drawn = -10;
    for (let i = low; i < pathLane.length && startOf(i) <= this.to; ++i) {
      const row = this.rows[lanes[pathLane[i]].row];
      const x = this.xOf(startOf(i));
      const width = this.xOf(endOf(i)) - x;
      if (x + width < drawn + 0.5) continue;
      if (width > 4) context.rect(x + 1, row.y + 1, width - 3, row.height - 2);
      else {
        context.moveTo(x, row.y + row.height / 2);
        context.lineTo(x + Math.max(1, width), row.y + row.height / 2);
      }
      if (i + 1 < pathLane.length && pathLane[i + 1] !== pathLane[i]) {
        const next = this.rows[lanes[pathLane[i + 1]].row];
        context.moveTo(x + width, row.y + row.height / 2);
        context.lineTo(this.xOf(startOf(i + 1)), next.y + next.height / 2);
      }
      drawn = x + width;
    }
    context.stroke();
    context.restore();
  }

  drawSelected(context) {
    if (!this.selected) return;
    const {row, slice} = this.selected;
    const x = this.xOf(row.lane.start[slice]);
    context.strokeStyle = this.theme.fg;
    context.lineWidth = 3;
    context.strokeRect(x, row.y, Math.max(2, this.xOf(row.lane.end[slice]) - x), row.height);
  }

  drawScrollbar(context) {
    if (this.height <= this.view()) return;
    const scale = this.view() / this.height;
    context.fillStyle = this.theme.muted;
    context.globalAlpha = 0.5;
    context.fillRect(this.width - 5, AXIS + this.scroll * scale, 4, this.view() * scale);
    context.globalAlpha = 1;
  }

  rowAt(y) {
    const inside = y - AXIS + this.scroll;
    return y < AXIS ? undefined : this.rows.find(row => row.lane && inside >= row.y && inside <= row.y + row.height);
  }

  hover(x, y) {
    const row = x < GUTTER ? undefined : this.rowAt(y);
    const time = this.timeAt(x);
    const slice = row ? sliceAfter(row.lane, time) : -1;
    if (!row || slice >= row.lane.start.length || row.lane.start[slice] > time) {
      this.tip.hidden = true;
      return;
    }
    this.tell(row, slice, x, y);
  }

  tell(row, slice, x, y) {
    this.tip.replaceChildren(...describeSlice(row, slice));
    this.tip.hidden = false;
    const left = x + 16 + this.tip.offsetWidth > this.width ? x - 16 - this.tip.offsetWidth : x + 16;
    this.tip.style.left = Math.max(2, left) + 'px';
    this.tip.style.top = Math.max(2, Math.min(y + 14, this.shown - this.tip.offsetHeight - 4)) + 'px';
  }

  step(direction) {
    const row = this.selected ? this.selected.row : this.rows.find(candidate => candidate.lane);
    if (!row) return;
    const slice = this.selected ? this.selected.slice + direction : sliceAfter(row.lane, this.from);
    if (slice < 0 || slice >= row.lane.start.length) return;
    this.selected = {row, slice};
    const middle = (row.lane.start[slice] + row.lane.end[slice]) / 2;
    if (middle < this.from || middle > this.to) this.pan(middle - (this.from + this.to) / 2);
    this.tell(row, slice, this.xOf(middle), row.y - this.scroll + AXIS + row.height);
    this.status.textContent = this.tip.innerText.replace(/\s+/g, ' ');
    this.request();
  }
}

// What is known of a slice, as elements.
function describeSlice(row, slice) {
  const {lane, section} = row;
  const label = section.data.labels[lane.label[slice]];
  const time = lane.end[slice] - lane.start[slice];
  const names = {F: 'forward', B: 'backward', I: 'input gradient', W: 'weight gradient', R: 'recompute'};
  const title = names[label.name] ? `${label.name} · ${names[label.name]}` : label.name;
  const number = lane.microBatch[slice] >= 0 ? `, micro-batch ${lane.microBatch[slice]}` : '';
  const stage = label.stage !== undefined ? `, stage ${label.stage}` : '';
  const lines = [element('b', {}, title), number + stage,
    element('div', {class: 'muted'}, `${section.data.names[lane.rank]} · ${lane.name}`)];
  const rows = [['time', humanTime(time)], ['from', `${humanTime(lane.start[slice])} to ${humanTime(lane.end[slice])}`]];
  if (label.holds) rows.push(['holds', label.holds]);
  if (label.shape) rows.push(['shape', label.shape]);
  const priced = (label.parts || []).reduce((sum, part) => sum + part[1], 0);
  if (priced > 0) {
    rows.push(['cost', label.parts.map(([name, ns]) => `${name.replace('_comm', '')} ${humanTime(ns)}`).join(' + ')]);
    if (priced !== time) rows.push(['', `lasts ${digits(time / priced, 3)} times its cost`]);
  }
  if (label.provenance && label.provenance.length > 0)
    rows.push(['known from', label.provenance.map(([name, share]) => `${name} ${percent(share, 0)}`).join(', ')]);
  lines.push(element('table', {}, ...rows.map(([name, text]) =>
    element('tr', {}, element('td', {class: 'muted'}, name), element('td', {class: 'text'}, text)))));
  return lines;
}
