// Reads the data and draws the page that they are for.
const PAGES = {run: runPage, sweep: sweepPage, goodput: goodputPage, validate: validatePage};
{
  const data = JSON.parse(document.getElementById('data').textContent);
  PAGES[data.kind](data);
  performance.mark('stagecraft-drawn');
}
