// Stands in for the process of a connection. The path of the address selects what it sends.
const frame = (kind, timestamp) => ({
  type: 'frames',
  frames: [{ kind, timestamp, dueMs: 0, data: Buffer.from([kind.length]) }],
});
const paths = {
  play: [frame('video', 0), frame('audio', 960), frame('video', 3_600)],
  lost: [frame('video', 0), { type: 'lost', reason: 'Connection timed out' }],
  costly: [{ type: 'lost', reason: 'it takes more than 192 MiB of memory', isCostly: true }],
  refused: [{ type: 'refused', reason: 'the source sends H.265 (hevc)' }],
  mute: [frame('video', 0), { type: 'noSound', reason: 'sound of the codec cook is not converted to Opus' }],
};

setInterval(() => process.send({ type: 'alive' }), 50);
process.on('disconnect', () => process.exit(0));
process.on('message', ({ type, input }) => {
  if (type === 'end') process.exit(0);
  const path = input.uri.split('/').at(-1);
  if (path === 'crash') {
    process.stderr.write(`cannot read ${input.uri}`);
    process.abort();
  }
  for (const message of paths[path]) process.send(message);
});
