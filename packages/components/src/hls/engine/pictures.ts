import type { CodecContext, Frame, SoftwareScaleContext } from 'node-av/lib';
import type { EngineUnit } from './engine-protocol.js';
import type { Tile } from './layout.js';
import type { Native } from './native.js';

/** A decoder that gives each picture as soon as it can. */
export function openDecoder({ lib, constants }: Native, codec: EngineUnit['codec']): CodecContext {
  const decoder = new lib.CodecContext();
  const found = lib.Codec.findDecoderByName(codec === 'vp8' ? constants.FF_DECODER_VP8 : constants.FF_DECODER_H264);
  decoder.allocContext3(found);
  decoder.threadCount = 1;
  decoder.setFlags(constants.AV_CODEC_FLAG_LOW_DELAY);
  const opened = decoder.open2Sync(found, null);
  if (opened < 0) throw new Error(`the decoder of ${codec} does not open: ${opened}`);

  return decoder;
}

/** Pictures of one track, scaled for their tile. */
export class PictureScaler {
  private scaler: SoftwareScaleContext | undefined;
  private scaled: Frame | undefined;
  private scaledFor = '';

  constructor(
    private readonly native: Native,
    private readonly method: 'SWS_BILINEAR' | 'SWS_BICUBIC',
  ) {}

  /** Whether pictures of this shape were not scaled to that size before. */
  prepare({ width, height, format }: Frame, target: Tile): boolean {
    const key = `${width}x${height}/${format}>${target.width}x${target.height}`;
    if (key === this.scaledFor) return false;
    const { lib, constants } = this.native;
    this.close();
    const format420 = constants.AV_PIX_FMT_YUV420P;
    const scaler = new lib.SoftwareScaleContext();
    const source = format as typeof format420;
    scaler.getContext(width, height, source, target.width, target.height, format420, constants[this.method]);
    const scaled = new lib.Frame();
    scaled.alloc();
    scaled.format = format420;
    // Vector code may write past the end of a row: never straight into the canvas.
    scaled.width = target.width;
    scaled.height = target.height;
    if (scaled.getBuffer(64) < 0) throw new Error(`no memory for a tile of ${target.width}x${target.height}`);
    this.scaler = scaler;
    this.scaled = scaled;
    this.scaledFor = key;

    return true;
  }

  /** The picture as prepared for; undefined when it cannot be scaled. */
  scale(picture: Frame): Frame | undefined {
    return this.scaler!.scaleFrameSync(this.scaled!, picture) < 0 ? undefined : this.scaled;
  }

  close(): void {
    this.scaler?.freeContext();
    this.scaled?.free();
    this.scaler = undefined;
    this.scaled = undefined;
    this.scaledFor = '';
  }
}
