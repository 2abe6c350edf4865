import type { AnswerOf } from '@bloom/inspection';
import { pad, paint, printable, type Screen, wrap } from '../text/style.js';
import { age, clock, counted, millis, short, span } from '../text/units.js';

type Actor = AnswerOf<'actor'>;

const LABEL = 11;

export function actorView({ node, ...actor }: Actor & { node: string }, now: number, screen: Screen): string[] {
  const line = (label: string, text: string): string[] =>
    wrap(printable(text), { ...screen, width: screen.width - LABEL }).map(
      (part, i) => `${paint(screen, 'bold', pad(i === 0 ? label : '', LABEL))}${part}`,
    );
  return [
    ...line('actor', `${actor.path.slice(1)}   on ${node}`),
    ...line('behaviour', behaviour(actor)),
    ...line('status', status(actor, now)),
    ...line('mailbox', mailbox(actor)),
    ...(actor.mailbox.types.length === 0
      ? []
      : line('', actor.mailbox.types.map(({ type, count }) => `${type} ${count}`).join('   '))),
    ...line('messages', messages(actor)),
    ...(actor.timers.length === 0 ? [] : line('timers', actor.timers.map(timer).join('   '))),
    ...(actor.names.length === 0 ? [] : line('registered', actor.names.join(', '))),
    ...line('watched by', watchers(actor)),
    ...(actor.childPaths.length === 0 ? [] : line('children', children(actor))),
    ...(actor.lastError === null ? [] : line('last error', lastError(actor.lastError, actor.restarts))),
  ];
}

function behaviour({ kind, parent, supervision, restarts }: Actor): string {
  const above = parent === null ? 'top level' : `parent ${parent.slice(1)}`;
  if (supervision === null) return `${kind}   ${above}   strategy decided by the parent`;
  const { decision, maxRestarts, windowMs, recent = restarts } = supervision;
  const of = decision === 'restart' ? `, ${recent} of ${maxRestarts} in ${span(windowMs)}` : '';
  return `${kind}   ${above}   strategy ${decision ?? 'its own'}${of}`;
}

function status({ status: now_, current, sinceMs, suspendedUntil, ageMs }: Actor, now: number): string {
  const doing = current === null ? now_ : `running "${current}"`;
  const since = sinceMs === null ? '' : `  for ${span(sinceMs)}`;
  const until = suspendedUntil === null ? '' : `, resumes in ${span(Math.max(0, suspendedUntil - now))}`;
  return `${suspendedUntil === null ? doing : 'suspended'}${since}${until}   alive ${age(ageMs)}`;
}

function mailbox({ queue, oldestMs, mailbox: { limit, essential }, overflowed }: Actor): string {
  const oldest = oldestMs === null ? '' : `, oldest ${span(oldestMs)}`;
  const never = essential === 'all' ? 'nothing' : 'all but essential messages';
  const overflow = overflowed === 0 ? `overflow drops ${never}` : `${overflowed} not taken`;
  return `${queue} waiting${oldest}, limit ${limit}, ${overflow}`;
}

function messages({ received, handled, sent, failed, p50Ms, p99Ms }: Actor): string {
  const out = sent === null ? '' : `, ${short(sent)} sent`;
  return `${short(received)} received, ${short(handled)} handled${out}, ${failed} failed   p50 ${millis(p50Ms)} ms, p99 ${millis(p99Ms)} ms`;
}

function timer({ name, dueInMs }: Actor['timers'][number]): string {
  if (dueInMs === null) return name;
  return dueInMs < 0 ? `${name} (late ${span(-dueInMs)})` : `${name} in ${span(dueInMs)}`;
}

function watchers({ watchers: total, watchedBy }: Actor): string {
  if (total === 0) return 'none';
  const others = total - watchedBy.length;
  const names = watchedBy.map((path) => path.replace(/^\//, ''));
  return [...names, ...(others > 0 ? [`${others} other${others === 1 ? '' : 's'}`] : [])].join(', ');
}

function children({ childPaths, children: total, path }: Actor): string {
  const names = childPaths.map((child) => (child.startsWith(`${path}/`) ? child.slice(path.length + 1) : child));
  return `${counted(total, 'child', 'children')}: ${names.join(', ')}${total > names.length ? ', …' : ''}`;
}

function lastError({ at, message, messageType, where }: NonNullable<Actor['lastError']>, restarts: number): string {
  const place = where === null ? '' : `, ${where}`;
  return `${clock(at)}  ${message}   (while handling ${messageType}${place}; restart ${restarts})`;
}

export function stateView(answer: AnswerOf<'state'>, node: string, screen: Screen): string[] {
  const { kind, path, state, shown, truncated, redacted } = answer;
  if (!shown) return [`${path.slice(1)} on ${node}: actors of the kind ${kind} show no state.`];
  const notes = [
    ...(truncated ? ['parts are left out: --depth and --bytes show more'] : []),
    ...(redacted > 0 ? [`${counted(redacted, 'secret')} replaced`] : []),
  ];
  return [
    ...JSON.stringify(state, null, 2)
      .split('\n')
      .map((line) => printable(line)),
    ...(notes.length === 0 ? [] : [paint(screen, 'dim', notes.join('; '))]),
  ];
}
