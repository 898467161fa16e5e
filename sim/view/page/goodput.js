// The page of weeks under failures.
const BUCKET_PAINT = {productive: 0, degraded: 3, lost_work: 10, checkpoint: 5, detect: 1, reconfigure: 6, state_transfer: 4, idle: 9};

function goodputFacts(result) {
  const [low, high] = result.ci95;
  return element('div', {class: 'facts'},
    fact(digits(result.samples_per_s) + ' samples/s', `95 %: ${digits(low)} – ${digits(high)}; ${digits(result.ideal_samples_per_s)} without failures`),
    fact(percent(result.fraction_of_ideal, 2), 'of ideal'), fact(percent(result.ettr, 2), 'effective training time'),
    fact(digits(result.failures, 3), `failures in ${humanTime(result.horizon_s * 1e9)}; mean of ${result.repeats} repeats`),
    fact(humanTime(result.mean_time_to_recover_s * 1e9), 'to recover, in the mean'), fact(digits(result.gpus, 7), `GPUs on ${result.nodes} nodes`));
}

function bucketSection(data) {
  const section = element('section', {id: 'buckets'}, element('h2', {}, 'Where the time goes'));
  const keys = Object.keys(data.results[0].buckets_s);
  const parts = result => keys.map(key => ({name: key.replace('_', ' '), value: result.buckets_s[key], paint: BUCKET_PAINT[key]}));
  data.results.forEach((result, i) => section.append(element('div', {class: 'barline'}, element('span', {}, data.names[i] || result.policy),
    stackedBar(parts(result), result.horizon_s), element('span', {}, percent(result.fraction_of_ideal, 1)))));
  const list = element('ul', {class: 'legend'});
  const fill = () => list.replaceChildren(...keys.map(key => element('li', {}, element('span', {class: 'swatch', style: {background: fillOf(BUCKET_PAINT[key])}}), key.replace('_', ' '))));
  fill();
  redrawn.push(fill);
  section.append(list);
  section.append(bucketZoom(data, keys));
  const several = data.results.length > 1;
  section.append(table(['', ...data.results.map((result, i) => data.names[i] || 'time'), ...(several ? [] : ['share'])], keys.map(key => [key.replace('_', ' '),
    ...data.results.map(result => humanTime(result.buckets_s[key] * 1e9)),
    ...(several ? [] : [percent(data.results[0].buckets_s[key] / data.results[0].horizon_s, 2)])])));
  return section;
}

// What failures and checkpoints take, without the time that is productive: else it cannot be seen.
function bucketZoom(data, keys) {
  const lossOf = result => keys.filter(key => key !== 'productive').reduce((sum, key) => sum + result.buckets_s[key], 0);
  const most = Math.max(...data.results.map(lossOf));
  if (!(most > 0)) return element('div', {});
  return element('div', {}, element('h3', {}, 'what is lost, alone'), ...data.results.map((result, i) => element('div', {class: 'barline'},
    element('span', {}, data.names[i] || result.policy),
    stackedBar(keys.filter(key => key !== 'productive').map(key => ({name: key.replace('_', ' '), value: result.buckets_s[key], paint: BUCKET_PAINT[key]})), most),
    element('span', {}, humanTime(lossOf(result) * 1e9)))));
}

// Phases of the diary: each lasts until the next begins.
function phasesOf(result) {
  const events = result.timeline;
  return events.map((event, i) => {
    const nodes = /training on ([\d,]+) nodes/.exec(event.what);
    const failure = / on node|: detect for/.test(event.what);
    const kind = nodes ? 'training' : /checkpoint/.test(event.what) ? 'checkpoint' : failure ? 'detect' : /^reconfigure/.test(event.what) ? 'reconfigure' :
      /^state transfer/.test(event.what) ? 'state_transfer' : 'idle';
    const end = i + 1 < events.length ? events[i + 1].time_s : result.horizon_s;
    return {start: event.time_s, end, what: event.what, kind, failure, nodes: nodes ? Number(nodes[1].replaceAll(',', '')) : 0};
  });
}

function diaryPicture(result, phases) {
  const width = 1100, height = 190, left = 60, bottom = height - 50;
  const most = Math.max(result.nodes, ...phases.map(phase => phase.nodes));
  const least = Math.min(...phases.filter(phase => phase.nodes > 0).map(phase => phase.nodes));
  const floor = Math.max(0, least - Math.max(1, (most - least) * 0.5));
  const x = time => left + time / result.horizon_s * (width - left - 8);
  const y = nodes => bottom - (nodes - floor) / (most - floor || 1) * (bottom - 26);
  const picture = svg('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'nodes that train over time, and failures'});
  const draw = () => {
    picture.replaceChildren();
    for (const phase of phases) {
      const title = svg('title', {}, `${humanTime(phase.start * 1e9)}: ${phase.what}`);
      if (phase.kind === 'training')
        picture.append(svg('rect', {x: x(phase.start), y: y(phase.nodes), width: Math.max(0.5, x(phase.end) - x(phase.start)), height: bottom - y(phase.nodes),
          fill: colourOf(phase.nodes < most ? 3 : 0)}, title));
      else
        picture.append(svg('rect', {x: x(phase.start), y: bottom + 4, width: Math.max(1.5, x(phase.end) - x(phase.start)), height: 10,
          fill: colourOf(BUCKET_PAINT[phase.kind])}, title));
      if (phase.failure)
        picture.append(svg('path', {d: `M${x(phase.start)} 20l-5 -10h10z`, fill: variable('--bad')}, svg('title', {}, `${humanTime(phase.start * 1e9)}: ${phase.what}`)));
    }
    for (const nodes of new Set([most, least])) picture.append(svg('text', {x: left - 8, y: y(nodes) + 4, 'text-anchor': 'end'}, String(nodes)));
    picture.append(svg('text', {x: 4, y: 14}, 'nodes'));
    for (const day of ticks(0, result.horizon_s / 86400, 10))
      picture.append(svg('text', {x: Math.min(x(day * 86400), width - 20), y: bottom + 30, 'text-anchor': 'middle'}, digits(day) + ' d'));
    picture.append(svg('line', {class: 'axis', x1: left, x2: width - 8, y1: bottom, y2: bottom}));
  };
  draw();
  redrawn.push(draw);
  return picture;
}

function diarySection(result) {
  if (!result.timeline || result.timeline.length === 0) return null;
  const phases = phasesOf(result);
  return element('section', {id: 'diary'}, element('h2', {}, 'What happened, in the first repeat'),
    element('figure', {}, diaryPicture(result, phases), element('figcaption', {},
      'Height: nodes that train; lighter where some are missing. Triangles: failures. Below: time without training, at least a hair wide.')),
    element('details', {}, element('summary', {}, `the diary, ${result.timeline.length} lines`),
      table(['when', 'what'], result.timeline.slice(0, 2000).map(event => [humanTime(event.time_s * 1e9), event.what]), [0, 1])));
}

function goodputDetails(result) {
  const section = element('section', {}, element('h2', {}, 'Causes, inputs, advice'));
  if (result.causes.length > 0)
    section.append(table(['cause', 'failures', 'stopped', 'undone'], result.causes.map(cause => [cause.cause, digits(cause.failures, 3), humanTime(cause.stopped_s * 1e9), humanTime(cause.undone_s * 1e9)])));
  const signed = share => (share >= 0 ? '+' : '−') + percent(Math.abs(share), 2);
  if ((result.inputs || []).length > 0)
    section.append(element('h3', {}, 'If an input were half or twice as large'), table(['input', 'is', 'half', 'twice', 'from'],
      result.inputs.map(input => [input.name, input.value, signed(input.half), signed(input.twice), input.source]), [0, 4]));
  const advice = result.advice || {};
  if (advice.interval_s) section.append(element('p', {}, `Checkpoint every ${humanTime(advice.interval_s * 1e9)}: ${advice.interval_why}.`));
  if (advice.spares !== undefined && advice.spares !== null) section.append(element('p', {}, `${advice.spares_how[0].toUpperCase()}${advice.spares_how.slice(1)}: ${advice.spares_why}.`));
  for (const note of result.notes || []) section.append(element('p', {class: 'muted'}, note));
  return section;
}

function goodputTable(data) {
  return table(['', 'samples/s', '95 %', 'of ideal', 'ETTR', 'failures', 'restarts'], data.results.map((result, i) => [data.names[i] || result.policy,
    digits(result.samples_per_s), `${digits(result.ci95[0])} – ${digits(result.ci95[1])}`, percent(result.fraction_of_ideal, 2), percent(result.ettr, 2),
    digits(result.failures, 3), digits(result.restarts, 3)]));
}

function goodputPage(data) {
  const page = document.getElementById('page');
  page.append(element('h1', {}, data.title));
  const one = data.results.length === 1;
  if (one) page.append(element('p', {class: 'muted'}, `${data.headlines[0]} · ${data.results[0].policy}`), goodputFacts(data.results[0]));
  else if (data.results.length > 0) page.append(goodputTable(data));
  for (const line of data.refused) page.append(element('p', {class: 'bad'}, line));
  if (data.results.length > 0) page.append(bucketSection(data));
  if (one) page.append(...[diarySection(data.results[0]), goodputDetails(data.results[0])].filter(part => part !== null));
  page.append(element('section', {}, element('h2', {}, 'To reproduce it'), element('pre', {}, `${data.command}\n${data.version}`)));
}
