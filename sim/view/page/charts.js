// Bars and small charts.

// Parts of a whole as one bar; `parts`: [{name, value, paint}], `whole` what the full width stands for. Shares in words are
// of their own sum.
function stackedBar(parts, whole) {
  const sum = parts.reduce((all, part) => all + part.value, 0);
  const bar = element('div', {class: 'bar'});
  const fill = () => bar.replaceChildren(...parts.filter(part => part.value > 0).map(part => {
    const share = part.value / whole;
    const spoken = percent(part.value / sum, 0);
    return element('i', {title: `${part.name} ${percent(part.value / sum)}`, style: {
      width: 100 * share + '%', background: fillOf(part.paint), color: textOn(part.paint)}}, share > 0.05 ? spoken : '');
  }));
  fill();
  redrawn.push(fill);
  return bar;
}

// Step-like areas over time on a base of flat bands, with the capacity as a line. `beside`: the bands while passes run, those of
// the optimizer step, and when it may begin.
function memoryChart(stage, held, beside, capacity, most, end) {
  const width = 300, height = 120, left = 2, bottom = height - 16;
  const peak = Math.max(0, ...held);
  const passesEnd = left + (width - left) * (end > 0 ? beside.passes_end_ns / end : 1);
  const y = bytes => bottom - bytes / most * (bottom - 6);
  const bandsOf = sums => [['weights', sums.weights, 0], ['gradients', sums.gradients, 5], ['optimizer', sums.optimizer, 7],
    ['other', sums.buffers + stage.overhead_bytes, 8]];
  const picture = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img',
    'aria-label': `rank ${stage.stage}: ${humanBytes(stage.peak_bytes)} at the peak`});
  // Their sum.
  const drawBands = (sums, from, to, when) => {
    let base = 0;
    for (const [name, bytes, paint] of bandsOf(sums)) {
      if (to > from) picture.append(svg('rect', {x: from, width: to - from, y: y(base + bytes), height: Math.max(0, y(base) - y(base + bytes)),
        fill: colourOf(paint), opacity: '0.75'}, svg('title', {}, `${name}${when} ${humanBytes(bytes)}`)));
      base += bytes;
    }
    return base;
  };
  const fill = () => {
    picture.replaceChildren();
    const base = drawBands(beside.passes, left, passesEnd, '');
    drawBands(beside.step, passesEnd, width, ' in the optimizer step');
    const step = (width - left) / held.length;
    let path = `M${left} ${y(base)}`;
    held.forEach((bytes, i) => { path += `L${(left + i * step).toFixed(1)} ${y(base + bytes).toFixed(1)}L${(left + (i + 1) * step).toFixed(1)} ${y(base + bytes).toFixed(1)}`; });
    picture.append(svg('path', {d: path + `L${width} ${y(base)}Z`, fill: colourOf(0)}, svg('title', {}, `activations and what else passes hold, at most ${humanBytes(peak)}`)));
    if (capacity > 0) picture.append(svg('line', {x1: left, x2: width, y1: y(capacity), y2: y(capacity), stroke: variable('--bad'),
      'stroke-width': '1.5', 'stroke-dasharray': '5 3'}, svg('title', {}, `capacity ${humanBytes(capacity)}`)));
    picture.append(svg('line', {class: 'axis', x1: left, x2: width, y1: bottom, y2: bottom}),
      svg('text', {x: left, y: height - 3}, '0'), svg('text', {x: width, y: height - 3, 'text-anchor': 'end'}, humanTime(end)));
  };
  fill();
  redrawn.push(fill);
  return element('div', {class: 'chart'}, element('b', {}, `rank ${stage.stage}`), ` ${humanBytes(stage.peak_bytes)}`, picture);
}

// How full a link is over time: `shares` in thousandths of its capacity, in equal parts of the whole.
function linkChart(link, shares, end) {
  const width = 300, height = 90, left = 2, bottom = height - 16;
  const most = Math.max(1000, ...shares), y = share => bottom - share / most * (bottom - 6);
  const picture = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${link.name}: ${percent(link.utilisation)} used`});
  const fill = () => {
    picture.replaceChildren();
    const step = (width - left) / shares.length;
    let path = `M${left} ${bottom}`;
    shares.forEach((share, i) => { path += `L${(left + i * step).toFixed(1)} ${y(share).toFixed(1)}L${(left + (i + 1) * step).toFixed(1)} ${y(share).toFixed(1)}`; });
    picture.append(svg('path', {d: path + `L${width} ${bottom}Z`, fill: colourOf(4)}, svg('title', {}, `at most ${percent(Math.max(...shares) / 1000)} of ${digits(link.capacity_bytes_per_s / 1e9)} GB/s`)),
      svg('line', {x1: left, x2: width, y1: y(1000), y2: y(1000), stroke: variable('--bad'), 'stroke-width': '1.5', 'stroke-dasharray': '5 3'}, svg('title', {}, 'full')),
      svg('line', {class: 'axis', x1: left, x2: width, y1: bottom, y2: bottom}),
      svg('text', {x: left, y: height - 3}, '0'), svg('text', {x: width, y: height - 3, 'text-anchor': 'end'}, humanTime(end)));
  };
  fill();
  redrawn.push(fill);
  return element('div', {class: 'chart'}, element('b', {}, link.name), ` ${percent(link.utilisation)}`, picture);
}
