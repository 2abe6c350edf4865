// `npm run recording:mix -- <directory ...> [-o call.mp4]`: mixes a finished recording, `report.json` and a file per
// track, into one MP4 file with all participants.
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { install, requireNode, root, run } from './setup.mjs';

const usage = `Usage: npm run recording:mix -- <directory ...> [-o call.mp4] [--layout speaker] [--size 1920x1080]

  <directory>   of a finished recording: report.json and the files that it lists. If its room has moved, those of all
                parts in order
  -o, --output  the file to make; default: <name of the directory>.mp4 in the working directory
  --layout      grid, or speaker: whoever speaks is large; default: grid
  --size        of the picture in pixels, even numbers; default: 1280x720`;

function readArguments() {
  try {
    const { values, positionals } = parseArgs({
      options: {
        output: { type: 'string', short: 'o' },
        help: { type: 'boolean', short: 'h' },
        layout: { type: 'string' },
        size: { type: 'string' },
      },
      allowPositionals: true,
    });
    if (values.help) {
      console.log(usage);
      process.exit(0);
    }
    if (positionals.length === 0) throw new Error('a directory, got none');
    // npm runs scripts in the repository's root, but paths are relative to the user's directory.
    const from = process.env.INIT_CWD ?? process.cwd();
    const directories = positionals.map((given) => resolve(from, given));
    const { layout, size } = values;
    const sides = /^(\d{1,5})x(\d{1,5})$/.exec(size ?? '1280x720');
    if (sides === null) throw new Error(`a size such as 1280x720, got: ${size}`);
    if (![undefined, 'grid', 'speaker'].includes(layout)) throw new Error(`the layout grid or speaker, got: ${layout}`);
    const picture = { width: Number(sides[1]), height: Number(sides[2]), ...(layout === undefined ? {} : { layout }) };
    return { directories, picture, output: resolve(from, values.output ?? `${basename(directories[0])}.mp4`) };
  } catch (error) {
    console.error(`${error.message}\n\n${usage}`);
    process.exit(64);
  }
}

/** Shows progress: one updating line on a terminal, a line per tenth elsewhere. */
function progress() {
  let shown = -1;
  return (share) => {
    const percent = Math.floor(share * 100);
    if (process.stderr.isTTY) process.stderr.write(`\rmixing ${percent} %`);
    else if (Math.floor(percent / 10) > Math.floor(shown / 10)) process.stderr.write(`mixing ${percent} %\n`);
    shown = Math.max(shown, percent);
  };
}

const { directories, output, picture } = readArguments();
requireNode();
install();
run(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-b', 'packages/components']);
const { mixRecording } = await import('../packages/components/dist/index.js');
const ending = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => ending.abort());
const began = performance.now();
try {
  const { durationMs, tracks } = await mixRecording({
    directories,
    output,
    picture,
    onProgress: progress(),
    onLeftOut: (path, reason) => console.error(`\n${basename(path)} is left out: ${reason}`),
    signal: ending.signal,
  });
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  const took = ((performance.now() - began) / 1_000).toFixed(1);
  console.log(`${output}: ${tracks} tracks, ${(durationMs / 1_000).toFixed(1)} s of recording in ${took} s`);
} catch (error) {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  console.error(error.message);
  process.exitCode = ending.signal.aborted ? 130 : 1;
}
