// Runs the WHIP muxer of FFmpeg 8 in `node-av`, as `ffmpeg -i pipe:0 -c copy -f whip -authorization <token> <url>`
// does:
// `node ffmpeg-whip.mjs [-option value ...] <url> < media`. Prints `answered` when it is connected, and ends with its
// input.
import { Dictionary, FFmpegError, FormatContext, Packet } from 'node-av/lib';

const given = process.argv.slice(2);
const url = given.pop();
const check = (code, what) => FFmpegError.throwIfError(code, what);

const input = new FormatContext();
check(await input.openInput('pipe:0', null, null), 'open the input');
check(await input.findStreamInfo(null), 'find its streams');
const output = new FormatContext();
check(output.allocOutputContext2(null, 'whip', url), 'find the muxer');
for (const { codecpar } of input.streams) {
  const stream = output.newStream(null);
  check(codecpar.copy(stream.codecpar), 'copy the parameters');
}
const options = new Dictionary();
for (let i = 0; i < given.length; i += 2) options.set(given[i].slice(1), given[i + 1], 0);
check(await output.writeHeader(options), 'publish');
console.log('answered');
const packet = new Packet();
packet.alloc();
while ((await input.readFrame(packet)) >= 0) {
  const { timeBase } = input.streams[packet.streamIndex];
  packet.rescaleTs(timeBase, output.streams[packet.streamIndex].timeBase);
  check(await output.interleavedWriteFrame(packet), 'send');
}
check(await output.writeTrailer(), 'end');
