// What `npm run simulate` shows while it runs: on a terminal one line that changes, elsewhere a line a minute.

const BAR = 30;

/** Returns how far a run is: histories done of those to run, their rate, and the time that is left. */
export function progressOf({ done, count, ms }) {
  const perSecond = ms === 0 ? 0 : (done * 1_000) / ms;
  const left = perSecond === 0 || done === count ? '' : `, ${duration((count - done) / perSecond)} left`;

  return `${done} of ${count} histories, ${perSecond.toFixed(1)} a second${left}`;
}

/** Returns the same after a bar, for a terminal. */
export function progressBar(run) {
  return `${'#'.repeat(Math.floor((BAR * run.done) / run.count)).padEnd(BAR, '.')} ${progressOf(run)}`;
}

/** Returns the arguments of `npm run simulate` for other seeds of the same run. */
export function argumentsFor({ nodes, hasStandbys, faults }, { seed, seeds }) {
  const size = nodes === undefined ? '' : ` --nodes ${nodes}`;
  const standby = hasStandbys ? ' --standby' : '';
  const kinds = faults === undefined ? '' : ` --faults ${faults.join()}`;

  return `npm run simulate -- --seeds ${seeds} --seed ${seed}${size}${standby}${kinds}`;
}

function duration(seconds) {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min`;

  return `${(seconds / 3_600).toFixed(1)} h`;
}
