/*
 * Receives datagrams on inherited sockets and reports to stdout, so that the receiving side of a load test costs next to
 * nothing. It polls instead of sleeping in epoll: a sleeper would cost the *sender* a cross-core wake-up per packet.
 *
 * usage: sink FIRST_FD COUNT SAMPLE
 * Output frames: u8 type, u32 length (little endian), body.
 *   1 packet: u32 socket index, u64 receive time in us since 1970 (kernel stamp), datagram. One RTP packet in SAMPLE of
 *             each socket, and everything that is not RTP.
 *   2 totals, every 100 ms: u64 RTP packets, u64 bytes
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

int main(int argc, char **argv) {
  if (argc != 4) return 64;
  int first = atoi(argv[1]), count = atoi(argv[2]);
  uint64_t sample = strtoull(argv[3], 0, 10), packets = 0, bytes = 0, last = 0;
  uint64_t *seen = calloc(count, sizeof *seen);
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
        if (rtp) {
          packets++;
          bytes += length;
          if (seen[i]++ % sample) continue;
        }
        struct { uint32_t index; uint64_t us; } __attribute__((packed)) head = {i, 0};
        for (struct cmsghdr *c = CMSG_FIRSTHDR(&messages[m].msg_hdr); c; c = CMSG_NXTHDR(&messages[m].msg_hdr, c))
          if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(c), sizeof t);
            head.us = (uint64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
          }
        put(1, &head, sizeof head, data[m], length);
      }
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t ms = (uint64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    if (ms - last >= 100) {
      uint64_t totals[2] = {packets, bytes};
      put(2, totals, sizeof totals, 0, 0);
      last = ms;
      char rest[64];
      if (poll(&in, 1, 0) > 0 && read(0, rest, sizeof rest) <= 0) return 0;
    }
    if (fflush(stdout)) return 1;
    usleep(500);
  }
}
