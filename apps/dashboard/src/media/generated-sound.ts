// A soft drop every two seconds for users without a microphone, so that others hear something.

const PAUSE_SECONDS = 2;
const notes = [523.25, 659.25, 783.99];

export function generatedSound(): MediaStreamTrack {
  const context = new AudioContext();
  const out = context.createMediaStreamDestination();
  const [track] = out.stream.getAudioTracks();
  if (track === undefined) throw new Error('this browser cannot make a sound track');

  // A looped buffer needs no timer, so a background tab keeps its beat.
  const buffer = new AudioBuffer({ length: context.sampleRate * PAUSE_SECONDS, sampleRate: context.sampleRate });
  const samples = buffer.getChannelData(0);
  for (const [i, hz] of notes.entries()) {
    const start = Math.floor(i * 0.12 * context.sampleRate);
    for (let n = start; n < samples.length; n += 1) {
      const t = (n - start) / context.sampleRate;
      samples[n] = (samples[n] ?? 0) + 0.12 * Math.min(t * 200, 1) * Math.exp(-t * 6) * Math.sin(2 * Math.PI * hz * t);
    }
  }
  const loop = new AudioBufferSourceNode(context, { buffer, loop: true });
  loop.connect(out);
  loop.start();
  void context.resume();
  const stop = track.stop.bind(track);
  track.stop = () => {
    if (track.readyState === 'ended') return;
    stop();
    void context.close();
  };
  return track;
}
