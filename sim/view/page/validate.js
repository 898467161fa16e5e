// The page of predictions against measurements.
const SCATTER = {width: 1000, height: 660, left: 86, right: 40, top: 22, bottom: 52};
const BAND = 0.1;
const SET_PAINTS = [0, 1, 4, 5, 6, 3, 7];
// Around (0, 0), about 10 across: sets are told apart by their mark as well.
const MARKS = ['M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z', 'M-4 -4h8v8h-8z', 'M0 -5.4l5 9h-10z', 'M0 -6l4.6 6l-4.6 6l-4.6 -6z', 'M0 5.4l5 -9h-10z',
  'M-1.7 -5.5h3.4v3.8h3.8v3.4h-3.8v3.8h-3.4v-3.8h-3.8v-3.4h3.8z', 'M-5.5 -2.5h11v5h-11z', 'M-2.5 -5.5h5v11h-5z', 'M0 -6l1.6 4.4h4.4l-3.6 2.8l1.4 4.4l-3.8 -2.6l-3.8 2.6l1.4 -4.4l-3.6 -2.8h4.4z',
  'M-5 -5l5 3l5 -3l-3 5l3 5l-5 -3l-5 3l3 -5z', 'M-5.2 0l2.6 -4.5h5.2l2.6 4.5l-2.6 4.5h-5.2z',
  'M-5 -4.2l10 8.4v-8.4l-10 8.4z', 'M-4.2 -5h8.4l-8.4 10h8.4z'];

// 1, 2 and 5 times the powers of ten in a range, or the powers alone: labels this wide do not touch.
// Even steps where fewer than two of them are in the range.
const LABEL_WIDTH = 64;
function logTicks(least, most, width) {
  const decade = width / Math.log10(most / least);
  const factors = decade * Math.log10(2) >= LABEL_WIDTH ? [1, 2, 5] : [1];
  const out = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); ++power)
    for (const factor of factors) {
      const tick = factor * 10 ** power;
      if (tick >= least && tick <= most) out.push(tick);
    }
  return out.length > 1 ? out : ticks(least, most, 6);
}

function signedPercent(share) {
  return (share >= 0 ? '+' : '−') + percent(Math.abs(share));
}

function describeRow(set, row) {
  return `${set.name}\n${row.name}\npredicted ${humanTime(row.predicted_s * 1e9)}, measured ${humanTime(row.measured_s * 1e9)}: ${signedPercent(row.error)}\n` +
    `90 %: ${humanTime(row.interval_90_s[0] * 1e9)} to ${humanTime(row.interval_90_s[1] * 1e9)}`;
}

// The sets beyond one for each mark in each paint.
function outlined(index) {
  return index >= MARKS.length * SET_PAINTS.length;
}

function markOf(set, index, x, y, title) {
  return svg('path', {class: 'mark', d: MARKS[index % MARKS.length], transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
    fill: colourOf(SET_PAINTS[index % SET_PAINTS.length]), 'fill-opacity': '0.8', stroke: variable(outlined(index) ? '--fg' : '--bg'), 'stroke-width': outlined(index) ? '1.2' : '0.6'}, svg('title', {}, title));
}

// Both axes over the same range, so that the diagonal is what it seems.
class ScatterScale {
  constructor(rows) {
    const all = rows.flatMap(row => [row.predicted_s, row.measured_s]);
    this.least = Math.min(...all) / 1.25;
    this.most = Math.max(...all) * 1.25;
    this.right = SCATTER.width - SCATTER.right;
    this.bottom = SCATTER.height - SCATTER.bottom;
  }

  share(seconds) {
    return (Math.log(seconds) - Math.log(this.least)) / (Math.log(this.most) - Math.log(this.least));
  }

  x(seconds) {
    return SCATTER.left + this.share(seconds) * (this.right - SCATTER.left);
  }

  y(seconds) {
    return this.bottom - this.share(seconds) * (this.bottom - SCATTER.top);
  }
}

function drawScatterAxes(picture, scale) {
  for (const tick of logTicks(scale.least, scale.most, scale.right - SCATTER.left)) {
    const text = humanTime(tick * 1e9);
    picture.append(svg('line', {class: 'axis', x1: SCATTER.left, x2: scale.right, y1: scale.y(tick), y2: scale.y(tick)}),
      svg('line', {class: 'axis', x1: scale.x(tick), x2: scale.x(tick), y1: SCATTER.top, y2: scale.bottom}),
      svg('text', {x: SCATTER.left - 8, y: scale.y(tick) + 4, 'text-anchor': 'end'}, text),
      svg('text', {x: scale.x(tick), y: scale.bottom + 18, 'text-anchor': 'middle'}, text));
  }
  picture.append(svg('text', {x: (SCATTER.left + scale.right) / 2, y: SCATTER.height - 8, 'text-anchor': 'middle'}, 'measured, an iteration'),
    svg('text', {x: 8, y: 13}, 'predicted'));
}

// The diagonal, and where predictions are within a tenth of it; cut at the frame.
function drawDiagonal(picture, scale) {
  const edge = (seconds, factor) => `${scale.x(seconds).toFixed(1)},${scale.y(seconds * factor).toFixed(1)}`;
  const {least, most} = scale, above = 1 + BAND, below = 1 - BAND;
  picture.append(svg('polygon', {id: 'band', fill: variable('--accent'), opacity: '0.14', points: [edge(least, 1), edge(least, above), edge(most / above, above),
    edge(most, 1), edge(most, below), edge(least / below, below)].join(' ')}, svg('title', {}, `predicted within ${percent(BAND, 0)} of measured`)),
  svg('line', {id: 'diagonal', x1: scale.x(least), y1: scale.y(least), x2: scale.x(most), y2: scale.y(most), stroke: variable('--path'), 'stroke-width': '1.2'},
    svg('title', {}, 'predicted as measured')));
}

function scatterChart(sets, chosen) {
  const shown = sets.filter(set => chosen === '' || set.name === chosen);
  const picture = svg('svg', {viewBox: `0 0 ${SCATTER.width} ${SCATTER.height}`, role: 'img', 'aria-label': 'predicted against measured time of an iteration'});
  const scale = new ScatterScale(shown.flatMap(set => set.rows));
  drawScatterAxes(picture, scale);
  drawDiagonal(picture, scale);
  sets.forEach((set, index) => {
    if (shown.includes(set))
      for (const row of set.rows) picture.append(markOf(set, index, scale.x(row.measured_s), scale.y(row.predicted_s), describeRow(set, row)));
  });
  const keys = sets.map((set, index) => [svg('svg', {viewBox: '-7 -7 14 14', style: 'width: 14px; flex: none'}, markOf(set, index, 0, 0, set.title)),
    `${set.name}  ${percent(set.mape)}`, !shown.includes(set)]);
  return element('figure', {}, picture, keyList(keys), element('figcaption', {},
    `A mark is a published row; the line is where both are equal, the band where they are within ${percent(BAND, 0)}. Beside each set its mean absolute error. Both axes are logarithmic.`));
}

function setsTable(sets) {
  return table(['set', 'profile', 'rows', 'mean error', 'bias', 'median', 'worst', 'inside 90 %'], sets.map(set => {
    const worst = set.rows.reduce((most, row) => Math.abs(row.error) > Math.abs(most.error) ? row : most);
    return [set.name, set.profile, digits(set.rows.length, 5), percent(set.mape), signedPercent(set.bias), percent(set.median), signedPercent(worst.error),
      percent(set.rows.filter(row => row.covered).length / set.rows.length, 0)];
  }), [0, 1]);
}

function farTable(sets) {
  const far = sets.flatMap(set => set.rows.filter(row => Math.abs(row.error) > BAND).map(row => ({set, row})))
    .sort((a, b) => Math.abs(b.row.error) - Math.abs(a.row.error));
  if (far.length === 0) return element('p', {}, 'None.');
  return table(['row', 'set', 'predicted', 'measured', 'error', '90 %'], far.map(({set, row}) => [row.name, set.name, humanTime(row.predicted_s * 1e9),
    humanTime(row.measured_s * 1e9), signedPercent(row.error), row.covered ? 'inside' : 'outside']), [0, 1]);
}

function validatePage(data) {
  const page = document.getElementById('page');
  const sets = data.sets;
  const rows = sets.flatMap(set => set.rows);
  page.append(element('h1', {}, data.title));
  if (rows.length > 0) {
    const near = rows.filter(row => Math.abs(row.error) <= BAND).length;
    page.append(element('div', {class: 'facts'}, fact(digits(rows.length, 7), `published rows in ${sets.length} sets`),
      fact(percent(rows.reduce((sum, row) => sum + Math.abs(row.error), 0) / rows.length), 'mean absolute error of a row'),
      fact(percent(near / rows.length, 0), `within ${percent(BAND, 0)}`), fact(percent(rows.filter(row => row.covered).length / rows.length), 'inside their 90 % interval')),
    chosenChart('scatter', 'Predicted against measured', [{key: 'set', label: 'set', names: ['', ...sets.map(set => set.name)], first: '', spoken: name => name}],
      state => scatterChart(sets, state.set)),
    element('section', {}, element('h2', {}, 'Sets'), setsTable(sets)),
    element('section', {id: 'far'}, element('h2', {}, `Rows that miss by more than ${percent(BAND, 0)}`), farTable(sets)));
  }
  for (const line of data.skipped) page.append(element('p', {class: 'muted'}, line));
  page.append(element('section', {}, element('h2', {}, 'To reproduce it'), element('pre', {}, `${data.command}\n${data.version}`)));
}
