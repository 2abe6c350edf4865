import { type RtcpReader, TransportCcFeedback } from '@bloom/rtp';
import type { SealStream } from '@bloom/webrtc';
import { BandwidthAllocation, type AllocationSlot } from '../bandwidth/allocation.js';
import { BandwidthEstimator } from '../bandwidth/bandwidth-estimator.js';
import { Pacer } from '../bandwidth/pacer.js';
import { Redundancy } from '../bandwidth/redundancy.js';
import { RepairBudget } from '../bandwidth/repair-budget.js';
import { startShare } from '../bandwidth/start-share.js';
import { StandingDelay } from '../bandwidth/standing-delay.js';
import type { MediaRoomEvent, OutboundSlot, OutboundTrackStats, Variant } from '../media-engine.js';
import type { MediaContext } from '../context.js';
import { allocationSlot } from './allocation-slot.js';
import { sendHeld } from './held-packets.js';
import { OutboundTrack } from './outbound-track.js';
import type { SlotReceiver } from './slot-receiver.js';
import type { QualitySigns } from './quality-meter.js';
import { ProbeSender } from './probe-sender.js';
import { SlotNumbering } from './slot-numbering.js';
import { statsOf } from './slot-stats.js';

const REPORT_INTERVAL_MS = 1000;
const ALLOCATION_INTERVAL_MS = 200;
/** A client that has sent no feedback for so long after the first negotiable media does not measure, ms. */
const SILENT_MS = 2000;
const ESTIMATION_INTERVAL_MS = 1000;
const ESTIMATION_CHANGE = 0.05;
/** Assumed until the receiver's first report. */
const DEFAULT_ROUND_TRIP_MS = 50;
/**
 * Packets that one client's feedback may cover per tick: 40 times what 5,000 packets a second need. A run length lets a
 * few bytes cover thousands of packets, and reading them all would starve the other clients.
 */
const FEEDBACK_PER_TICK = 4096;
/** Sequence numbers that one client may report missing per tick: 20 times what 5,000 packets a second need. */
const NACKED_PER_TICK = 2048;
/** Former slots whose numbering is kept. */
const MAX_RETIRED = 256;
/** Targets remembered for tracks that have no slot yet. */
const MAX_EARLY_TARGETS = 256;

interface OutboundSideOptions {
  peerId: string;
  openStream(ssrc: number): SealStream | undefined;
  /** Sends the compound in the context's writer. */
  sendRtcp(): void;
  emit(event: MediaRoomEvent): void;
  fault(error: unknown): void;
  /** Connects a slot that may flow to its track, now or when the track appears. */
  slotLive(slot: OutboundTrack): void;
  slotGone(slot: OutboundTrack): void;
  /** True for a track that the client may not receive now. */
  isWithheld(trackId: string): boolean;
}

/** The sending side of one client: its slots, its feedback on them, and their share of its bandwidth. */
export class OutboundSide implements SlotReceiver {
  readonly #context: MediaContext;
  readonly #options: OutboundSideOptions;
  roundTripMs = DEFAULT_ROUND_TRIP_MS;
  readonly slots = new Map<string, OutboundTrack>();
  /** By mid: the slot that takes over once it has a picture to start with. */
  readonly #successors = new Map<string, OutboundTrack>();
  readonly #bySsrc = new Map<number, OutboundTrack>();
  readonly #numberings = new Map<number, SlotNumbering>();
  readonly #earlyTargets = new Map<string, Variant>();
  #receives = true;
  #estimator: BandwidthEstimator | undefined;
  readonly #probes: ProbeSender;
  readonly #allocation = new BandwidthAllocation<OutboundTrack>();
  readonly #redundancy = new Redundancy();
  readonly #standing = new StandingDelay();
  #allocationDueMs = 0;
  #allocatedAtMs = 0;
  #announcedBps = 0;
  #announcedAtMs = Number.NEGATIVE_INFINITY;
  readonly repairs = new RepairBudget();
  readonly pacer = new Pacer();
  hasHeld = false;
  #feedbackLeft = FEEDBACK_PER_TICK;
  #nackedLeft = NACKED_PER_TICK;
  #nackedSlot: OutboundTrack | undefined;
  #feedbackAtMs = 0;

  constructor(context: MediaContext, options: OutboundSideOptions) {
    this.#context = context;
    this.#options = options;
    this.#probes = new ProbeSender(this.slots);
  }

  get peerId(): string {
    return this.#options.peerId;
  }

  get estimationBps(): number | undefined {
    return this.#estimator?.estimateBps;
  }

  /**
   * Replaces all slots with those of the answer. New ones wait for `goLive`; missing ones stop immediately. A different
   * track on the SSRC of a slot takes over with its first keyframe, and the current one flows until then.
   */
  negotiate(negotiated: readonly OutboundSlot[], generation: number): void {
    const outbound = this.#receives ? negotiated : [];
    const wanted = new Map(outbound.map((params) => [params.mid, params]));
    for (const [mid, slot] of this.slots) {
      const params = wanted.get(mid);
      if (params === undefined || params.ssrc !== slot.params.ssrc) this.#remove(mid, slot);
    }
    for (const params of outbound) {
      const existing = this.slots.get(params.mid);
      if (existing === undefined) {
        this.#add(params, generation);
      } else if (isSameSlot(existing.params, params)) {
        this.#dropSuccessor(params.mid);
        existing.update(params);
      } else {
        this.#succeed(existing, params, generation);
      }
    }
    const numbered = outbound.some(
      ({ codec, extensions }) => extensions.transportCc !== undefined && codec.feedback.includes('transport-cc'),
    );
    if (!numbered || this.#estimator !== undefined) return;
    // It measures one way, not the round trip.
    this.#standing.reset();
    this.#estimator = new BandwidthEstimator(this.#standing);
  }

  /** With false all slots stop immediately, and later answers get none. */
  setReceives(receives: boolean): void {
    this.#receives = receives;
    if (!receives) for (const [mid, slot] of this.slots) this.#remove(mid, slot);
  }

  #add(params: OutboundSlot, generation: number): void {
    let numbering = this.#numberings.get(params.ssrc);
    if (numbering === undefined) {
      const { random } = this.#context.world;
      numbering = new SlotNumbering({ clockRate: params.codec.clockRate, random });
      this.#numberings.set(params.ssrc, numbering);
      this.#forgetOldNumberings();
    }
    const slot = new OutboundTrack(this.#context, { params, receiver: this, numbering, generation });
    this.#show(slot);
    this.#prepare(slot);
  }

  #show(slot: OutboundTrack): void {
    const { mid, ssrc, rtxSsrc } = slot.params;
    this.slots.set(mid, slot);
    this.#bySsrc.set(ssrc, slot);
    this.#bySsrc.set(rtxSsrc, slot);
  }

  /** Numbers, timestamps and picture ids continue, so the receiver sees one stream with one share of the bandwidth. */
  #succeed(slot: OutboundTrack, params: OutboundSlot, generation: number): void {
    const pending = this.#successors.get(params.mid);
    if (pending !== undefined && isSameSlot(pending.params, params)) return pending.update(params);
    this.#dropSuccessor(params.mid);
    const successor = new OutboundTrack(this.#context, {
      params,
      receiver: this,
      numbering: slot.numbering,
      generation,
      onBegin: () => this.#takeOver(successor),
    });
    this.#successors.set(params.mid, successor);
    successor.selection.setAllocation(slot.selection.allocationBps);
    successor.layers.maxFrameRate = slot.layers.maxFrameRate;
    this.#prepare(successor);
  }

  #takeOver(successor: OutboundTrack): void {
    const { mid } = successor.params;
    if (this.#successors.get(mid) !== successor) return;
    this.#successors.delete(mid);
    const former = this.slots.get(mid);
    if (former !== undefined) {
      successor.continueFrom(former);
      former.detach();
      this.#options.slotGone(former);
    }
    this.#show(successor);
  }

  #dropSuccessor(mid: string): void {
    const successor = this.#successors.get(mid);
    if (successor === undefined) return;
    this.#successors.delete(mid);
    successor.detach();
    this.#options.slotGone(successor);
  }

  /** Applies to a new slot what was said of its track before. */
  #prepare(slot: OutboundTrack): void {
    slot.setWithheld(this.#options.isWithheld(slot.trackId));
    const target = this.#earlyTargets.get(slot.trackId);
    if (target !== undefined) slot.selection.setTarget(target);
    this.#earlyTargets.delete(slot.trackId);
  }

  /**
   * Forgets the numbering of the oldest former slots. Their SSRCs may return, but only a limited number of them is
   * kept.
   */
  #forgetOldNumberings(): void {
    for (const ssrc of this.#numberings.keys()) {
      if (this.#numberings.size <= this.slots.size + MAX_RETIRED) return;
      if (!this.#bySsrc.has(ssrc)) this.#numberings.delete(ssrc);
    }
  }

  #remove(mid: string, slot: OutboundTrack): void {
    this.#dropSuccessor(mid);
    this.slots.delete(mid);
    this.#bySsrc.delete(slot.params.ssrc);
    this.#bySsrc.delete(slot.params.rtxSsrc);
    slot.detach();
    this.#options.slotGone(slot);
  }

  /** Starts the slots of this generation: its cycle has ended and keys are agreed. */
  goLive(generation: number): void {
    for (const slot of this.#all()) {
      if (slot.live || slot.generation > generation) continue;
      slot.goLive();
      this.#options.slotLive(slot);
    }
  }

  #all(): OutboundTrack[] {
    return [...this.slots.values(), ...this.#successors.values()];
  }

  setTarget(trackId: string, variant: Variant): void {
    for (const slot of this.#all()) {
      if (slot.trackId !== trackId) continue;
      if (slot.track?.simulcast === false) return;
      slot.selection.setTarget(variant);
      slot.selectionChanged();
      return;
    }
    if (this.#earlyTargets.size < MAX_EARLY_TARGETS) this.#earlyTargets.set(trackId, variant);
  }

  /** Stops a track that has a slot, or resumes it. A track that gets a slot later is not paused. */
  setPaused(trackId: string, paused: boolean): void {
    for (const slot of this.#all()) if (slot.trackId === trackId) slot.setPaused(paused);
  }

  /** Limits the pictures per second of a track that has a slot; `null`: no limit. */
  setMaxFrameRate(trackId: string, framesPerSecond: number | null): void {
    for (const slot of this.#all()) {
      if (slot.trackId !== trackId) continue;
      slot.layers.maxFrameRate = framesPerSecond ?? Infinity;
      if (slot.layerRates !== undefined) slot.layers.limitFrameRate(slot.layerRates);
    }
  }

  /** Stops a track that the client may not receive, or lets it flow again. */
  setWithheld(trackId: string, withheld: boolean): void {
    for (const slot of this.#all()) if (slot.trackId === trackId) slot.setWithheld(withheld);
  }

  // --- SlotReceiver

  nextTransportSequence(wanted: boolean): number {
    return wanted && this.#estimator !== undefined ? this.#estimator.nextSequence : -1;
  }

  packetSent(bytes: number, numbered: boolean, nowMs: number): void {
    if (numbered) this.#estimator!.packetSent(bytes, nowMs, this.#probes.active);
    this.#probes.sent(bytes);
    // The link's queue takes a probe.
    if (!this.#probes.active) this.pacer.sent(bytes, nowMs);
  }

  get redundancy(): number {
    return this.#redundancy.distance;
  }

  startBps(formerBps: number): number {
    if (this.#estimator === undefined) return Infinity;
    return startShare(this.#estimator.shownBps + formerBps, this.slots.values());
  }

  openStream(ssrc: number): SealStream | undefined {
    return this.#options.openStream(ssrc);
  }

  closeStream(stream: SealStream): void {
    this.#context.sealer.closeStream(stream);
  }

  fault(error: unknown): void {
    this.#options.fault(error);
  }

  emit(event: MediaRoomEvent): void {
    this.#options.emit(event);
  }

  // --- feedback

  reportBlocks(reader: RtcpReader, nowMs: number): void {
    const { block } = this.#context;
    for (let i = 0; reader.readReportBlock(i, block); i++) {
      const slot = this.#bySsrc.get(block.ssrc);
      if (slot === undefined || slot.params.ssrc !== block.ssrc) continue;
      const { lastSenderReport, delaySinceLastSenderReport } = block;
      const roundTripMs = slot.roundTrip.roundTripMs(lastSenderReport, delaySinceLastSenderReport, nowMs);
      if (this.#estimator === undefined && slot.params.kind === 'audio') {
        if (roundTripMs >= 0) this.#standing.sample(roundTripMs, nowMs);
        this.#redundancy.measured(block.fractionLost / 256, nowMs, this.#standing.ms);
      }
      slot.reported(block.cumulativeLost, roundTripMs);
      if (roundTripMs >= 0) this.roundTripMs += 0.25 * (Math.max(5, roundTripMs) - this.roundTripMs);
    }
  }

  feedback(reader: RtcpReader, nowMs: number): void {
    this.#feedbackAtMs = nowMs;
    if (reader.isTransportCc) {
      this.#transportFeedback(reader, nowMs);
    } else if (reader.isNack) {
      const slot = this.#bySsrc.get(reader.mediaSsrc);
      if (slot === undefined) return;
      slot.nacks++;
      this.#nackedSlot = slot;
      reader.forEachNack(this.#visitNack);
    } else if (reader.isPli) {
      this.#bySsrc.get(reader.mediaSsrc)?.keyframeWanted(nowMs);
    } else if (reader.isFir) {
      reader.forEachFir(this.#visitFir);
    }
  }

  readonly #visitNack = (sequence: number): void => {
    if (this.#nackedLeft === 0) return;
    this.#nackedLeft--;
    this.#nackedSlot?.resend(sequence, this.#feedbackAtMs);
  };

  readonly #visitFir = (ssrc: number): void => {
    this.#bySsrc.get(ssrc)?.keyframeWanted(this.#feedbackAtMs);
  };

  #transportFeedback(reader: RtcpReader, nowMs: number): void {
    const { feedback } = this.#context;
    const estimator = this.#estimator;
    const claimed = TransportCcFeedback.claim(reader);
    if (estimator === undefined || claimed > this.#feedbackLeft) return;
    this.#feedbackLeft -= claimed;
    if (!feedback.parse(reader)) return;
    for (let i = 0; i < feedback.packetCount; i++) {
      const sequence = (feedback.baseSequence + i) & 0xffff;
      const arrivalMs = feedback.arrivalsMs[i]!;
      if (Number.isNaN(arrivalMs)) estimator.lost(sequence);
      else estimator.received(sequence, arrivalMs);
    }
    estimator.feedbackEnd(nowMs);
  }

  // --- ticks

  tick(nowMs: number): void {
    this.repairs.tick(nowMs);
    this.#feedbackLeft = FEEDBACK_PER_TICK;
    this.#nackedLeft = NACKED_PER_TICK;
    this.#writeReports(nowMs);
    if (this.#probes.active) {
      this.#probes.tick(nowMs);
      if (!this.#probes.active) this.#estimator!.endProbe();
    }
    if (this.hasHeld) this.hasHeld = sendHeld(this.slots, nowMs);
    if (nowMs >= this.#allocationDueMs) {
      const reported = this.#estimator?.reported;
      if (reported !== undefined) this.#redundancy.count(reported, nowMs, this.#standing.ms);
      this.#allocate(nowMs);
      this.#allocationDueMs = nowMs + ALLOCATION_INTERVAL_MS;
    }
  }

  #writeReports(nowMs: number): void {
    const { writer, senderInfo } = this.#context;
    writer.reset();
    for (const slot of this.slots.values()) {
      if (nowMs < slot.reportDueMs || !slot.senderReport(nowMs, senderInfo)) continue;
      slot.reportDueMs = nowMs + REPORT_INTERVAL_MS;
      const cname = slot.params.cname ?? slot.track?.owner.peerId ?? '';
      // An SDES has at most 264 bytes; non-ASCII text may triple in size.
      if (writer.remaining < 28 + 16 + Math.min(255, cname.length * 3)) {
        this.#options.sendRtcp();
        writer.reset();
      }
      writer.senderReport(senderInfo).sdes(senderInfo.ssrc, cname);
    }
    if (writer.length > 0) this.#options.sendRtcp();
  }

  #allocate(nowMs: number): void {
    const intervalMs = nowMs - this.#allocatedAtMs;
    this.#allocatedAtMs = nowMs;
    const slots: AllocationSlot<OutboundTrack>[] = [];
    let fixedBps = 0;
    let sendingBps = 0;
    for (const slot of this.slots.values()) {
      slot.measure(intervalMs);
      sendingBps += slot.sendingBps;
      if (slot.selection.paused) continue;
      if (slot.track?.simulcast || slot.layerRates !== undefined) slots.push(allocationSlot(slot, nowMs));
      else fixedBps += slot.sendingBps;
    }
    const estimateBps = this.#estimator?.estimateBps;
    if (estimateBps === undefined) {
      for (const { key, isCautious } of slots) {
        if (isCautious === true && key.isNegotiable(nowMs - SILENT_MS)) key.setAllocation(Infinity, nowMs);
      }
      return;
    }
    this.repairs.measured(estimateBps, sendingBps);
    // What is sent although the link does not carry it would wait ever longer. Where no layer can rise there are no
    // probes, and a limit that a good link had for a moment would be kept.
    const limitBps = slots.length === 0 ? Infinity : this.#estimator!.limitBps;
    this.pacer.limit(Math.max(limitBps, sendingBps), this.#estimator!.congestedAtMs);
    this.#announce(estimateBps, nowMs);
    if (slots.length === 0) return;
    const { provenBps, shownBps, openBps, isProbing, hasProbedLimit } = this.#estimator!;
    // The result of a probe is worth waiting for: a step up that fails costs a pause.
    const link = { estimateBps, provenBps, hasProbedLimit, shownBps: isProbing ? 0 : shownBps, openBps };
    const { grants, probeBps, isOpen = false } = this.#allocation.update({ ...link, fixedBps, slots, nowMs });
    for (const [slot, bps] of grants) {
      for (const each of [slot, this.#successors.get(slot.params.mid)]) {
        each?.setAllocation(bps, nowMs);
      }
    }
    this.#estimator!.reachFor(probeBps === undefined || this.#probes.canProbe ? 0 : probeBps);
    const isSoon = this.#estimator!.wantsProbe || isOpen;
    const mayProbe = this.#probes.mayStart(nowMs, isSoon) && this.pacer.hasRoom(nowMs);
    if (probeBps !== undefined && mayProbe && this.#estimator!.startProbe(nowMs)) {
      this.#probes.start(probeBps, estimateBps, nowMs);
    }
  }

  #announce(estimationBps: number, nowMs: number): void {
    if (nowMs - this.#announcedAtMs < ESTIMATION_INTERVAL_MS) return;
    if (Math.abs(estimationBps - this.#announcedBps) <= ESTIMATION_CHANGE * this.#announcedBps) return;
    this.#announcedAtMs = nowMs;
    this.#announcedBps = estimationBps;
    this.#options.emit({ type: 'bandwidthEstimation', peerId: this.peerId, estimationBps });
  }

  /** Adds up what the slots have sent, and how far the most reduced one is below what its client wants. */
  qualitySigns(): Pick<QualitySigns, 'sent' | 'lost' | 'roundTripMs' | 'reducedBy'> {
    const signs = { sent: 0, lost: 0, roundTripMs: this.roundTripMs, reducedBy: 0 };
    for (const { packets, lost, selection } of this.slots.values()) {
      signs.sent += packets;
      signs.lost += lost;
      signs.reducedBy = Math.max(signs.reducedBy, selection.reducedBy);
    }
    return signs;
  }

  stats(): OutboundTrackStats[] {
    return [...this.slots.values()].map(statsOf);
  }

  /** Stops all slots after a transport failure; later negotiations may still remove them. */
  stop(): void {
    for (const slot of this.#all()) {
      slot.detach();
      this.#options.slotGone(slot);
    }
  }

  close(): void {
    this.stop();
    this.slots.clear();
    this.#successors.clear();
    this.#bySsrc.clear();
    this.#numberings.clear();
    this.#earlyTargets.clear();
  }
}

function isSameSlot(before: OutboundSlot, after: OutboundSlot): boolean {
  return before.trackId === after.trackId && before.ssrc === after.ssrc && before.codec.name === after.codec.name;
}
