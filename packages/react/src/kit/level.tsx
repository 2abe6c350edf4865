import { type ReactElement, useEffect, useState } from 'react';

/** Time between two measurements, in milliseconds. */
const PERIOD_MS = 100;
/** Root mean square of loud speech: the end of the scale. */
const LOUD = 0.25;
/** Steps of the scale: fewer renderings. */
const STEPS = 20;

/** Returns how loud a track is, from 0 to 1; 0 while it is null or where the browser cannot measure it. */
export function useSoundLevel(track: MediaStreamTrack | null): number {
  const [level, setLevel] = useState(0);
  useEffect(() => {
    setLevel(0);
    if (track === null || typeof AudioContext === 'undefined') return undefined;
    const context = new AudioContext();
    const analyser = context.createAnalyser();
    context.createMediaStreamSource(new MediaStream([track])).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    const timer = setInterval(() => {
      analyser.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, one) => sum + one * one, 0) / samples.length;
      setLevel(Math.round(Math.min(1, Math.sqrt(power) / LOUD) * STEPS) / STEPS);
    }, PERIOD_MS);
    // Some browsers measure nothing until the person has touched the page.
    const resume = (): void => void context.resume().catch(() => undefined);
    resume();
    addEventListener('pointerdown', resume, { once: true });
    return () => {
      clearInterval(timer);
      removeEventListener('pointerdown', resume);
      void context.close();
    };
  }, [track]);
  return level;
}

/** A meter that shows how loud a microphone is. */
export function LevelMeter({ track }: { readonly track: MediaStreamTrack | null }): ReactElement {
  const level = useSoundLevel(track);
  return <meter className="bloom-level" aria-label="Level of the microphone" min={0} max={1} value={level} />;
}
