/*
 * Receives datagrams on inherited sockets and reports to stdout, so that the receiving side of a load test costs next to
 * nothing. It polls instead of sleeping in epoll: a sleeper would cost the *sender* a cross-core wake-up per packet.
 *
 * usage: sink FIRST_FD COUNT SAMPLE [RTX_TYPE TRANSPORT_CC_ID]...
 * The pairs belong to the sockets in order; 0 means not negotiated. A delivery is the first packet with its sequence number that is
 * neither a retransmission (RFC 4588) nor padded, which the publisher's packets never are.
 * Output frames: u8 type, u32 length (little endian), body.
 *   1 packet: u32 socket index, u64 receive time in us since 1970 (kernel stamp), datagram. One delivery in SAMPLE of
 *             each socket, and everything that is not RTP.
 *   2 totals, every 100 ms: u64 deliveries, u64 bytes of them, u64 retransmissions, u64 other RTP packets: copies and padding
 *   3 arrivals, every 100 ms for each socket that negotiated transport-wide feedback: u32 socket index, u32 SSRC of the last
 *             packet, then u64 receive time and u64 transport-wide number of each packet
 * Ends when stdin ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 64, SIZE = 2048 };
static unsigned char data[BATCH][SIZE];
static unsigned char control[BATCH][128];
static struct iovec vectors[BATCH];
static struct mmsghdr messages[BATCH];

static void put(uint8_t type, const void *a, uint32_t na, const void *b, uint32_t nb) {
  unsigned char head[5] = {type};
  uint32_t length = na + nb;
  memcpy(head + 1, &length, 4);
  fwrite(head, 1, 5, stdout);
  fwrite(a, 1, na, stdout);
  if (nb) fwrite(b, 1, nb, stdout);
}

static int is_rtp(const unsigned char *p, unsigned n) {
  return n >= 12 && p[0] >= 128 && p[0] <= 191 && !(p[1] >= 192 && p[1] <= 223);
}

enum { WINDOW = 4096, ARRIVALS = 1024 };
struct arrival { uint64_t us, number; };
/** State of one socket. */
struct receiver {
  int rtx_type, transport_cc_id;
  uint64_t delivered;
  uint32_t ssrc;
  uint16_t highest;
  int started;
  /** Received sequence numbers, by number modulo WINDOW. */
  unsigned char came[WINDOW];
  uint32_t arrivals;
  struct { uint32_t index, ssrc; struct arrival list[ARRIVALS]; } report;
};

/** True for the first packet with this sequence number; also false for one that is WINDOW late. */
static int is_first(struct receiver *r, uint32_t ssrc, uint16_t sequence) {
  if (!r->started || r->ssrc != ssrc) {
    memset(r->came, 0, WINDOW);
    r->started = 1, r->ssrc = ssrc, r->highest = sequence - 1;
  }
  int ahead = (int16_t)(uint16_t)(sequence - r->highest);
  if (ahead <= -WINDOW) return 0;
  if (ahead > 0) {
    int skipped = ahead < WINDOW ? ahead : WINDOW;
    for (int i = 0; i < skipped; i++) r->came[(uint16_t)(sequence - i) % WINDOW] = 0;
    r->highest = sequence;
  }
  unsigned char *came = &r->came[sequence % WINDOW];
  return *came ? 0 : (*came = 1);
}

/** Transport-wide number in the extension with this id, of the one-byte form (RFC 8285 section 4.2); -1 if there is none. */
static int transport_number(const unsigned char *p, unsigned n, int id) {
  unsigned at = 12 + 4 * (p[0] & 15);
  if (!id || !(p[0] & 16) || at + 4 > n || p[at] != 0xbe || p[at + 1] != 0xde) return -1;
  unsigned end = at + 4 + 4 * (p[at + 2] << 8 | p[at + 3]);
  if (end > n) return -1;
  for (at += 4; at < end;) {
    int length = (p[at] & 15) + 1;
    if (p[at] == 0) {
      at++;
      continue;
    }
    if (p[at] >> 4 == id && length == 2 && at + 3 <= end) return p[at + 1] << 8 | p[at + 2];
    at += 1 + length;
  }
  return -1;
}

static void report(struct receiver *r, int index) {
  if (!r->arrivals) return;
  r->report.index = index;
  put(3, &r->report, 8 + r->arrivals * sizeof(struct arrival), 0, 0);
  r->arrivals = 0;
}

static uint64_t received_us(struct msghdr *message) {
  for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c))
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
      struct timespec t;
      memcpy(&t, CMSG_DATA(c), sizeof t);
      return (uint64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
    }
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 4) return 64;
  int first = atoi(argv[1]), count = atoi(argv[2]);
  if (argc != 4 && argc != 4 + 2 * count) return 64;
  uint64_t sample = strtoull(argv[3], 0, 10), packets = 0, bytes = 0, repairs = 0, others = 0, last = 0;
  struct receiver *receivers = calloc(count, sizeof *receivers);
  for (int i = 0; argc > 4 && i < count; i++)
    receivers[i].rtx_type = atoi(argv[4 + 2 * i]), receivers[i].transport_cc_id = atoi(argv[5 + 2 * i]);
  for (int i = 0; i < count; i++) {
    int on = 1, size = 4 << 20;
    setsockopt(first + i, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    setsockopt(first + i, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    fcntl(first + i, F_SETFL, O_NONBLOCK);
  }
  struct pollfd in = {.fd = 0, .events = POLLIN};
  for (;;) {
    for (int i = 0; i < count; i++) {
      for (int m = 0; m < BATCH; m++) {
        vectors[m] = (struct iovec){data[m], SIZE};
        messages[m].msg_hdr = (struct msghdr){.msg_iov = &vectors[m], .msg_iovlen = 1, .msg_control = control[m], .msg_controllen = sizeof control[m]};
      }
      int n = recvmmsg(first + i, messages, BATCH, MSG_DONTWAIT, 0);
      for (int m = 0; m < n; m++) {
        unsigned length = messages[m].msg_len;
        int rtp = is_rtp(data[m], length);
        uint64_t us = received_us(&messages[m].msg_hdr);
        if (rtp) {
          struct receiver *r = &receivers[i];
          unsigned char *p = data[m];
          uint32_t ssrc = (uint32_t)p[8] << 24 | p[9] << 16 | p[10] << 8 | p[11];
          int number = transport_number(p, length, r->transport_cc_id);
          if (number >= 0) {
            r->report.ssrc = ssrc;
            r->report.list[r->arrivals++] = (struct arrival){us, number};
            if (r->arrivals == ARRIVALS) report(r, i);
          }
          if (r->rtx_type && (p[1] & 127) == r->rtx_type) {
            repairs++;
            continue;
          }
          if (p[0] & 32 || !is_first(r, ssrc, p[2] << 8 | p[3])) {
            others++;
            continue;
          }
          packets++;
          bytes += length;
          if (r->delivered++ % sample) continue;
        }
        struct { uint32_t index; uint64_t us; } __attribute__((packed)) head = {i, us};
        put(1, &head, sizeof head, data[m], length);
      }
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t ms = (uint64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    if (ms - last >= 100) {
      for (int i = 0; i < count; i++) report(&receivers[i], i);
      uint64_t totals[4] = {packets, bytes, repairs, others};
      put(2, totals, sizeof totals, 0, 0);
      last = ms;
      char rest[64];
      if (poll(&in, 1, 0) > 0 && read(0, rest, sizeof rest) <= 0) return 0;
    }
    if (fflush(stdout)) return 1;
    usleep(500);
  }
}
