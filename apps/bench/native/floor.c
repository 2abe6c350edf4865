/*
 * The minimum cost of forwarding: per packet one SRTP protection with OpenSSL and one send, nothing else.
 * usage: floor gcm|ctr RECEIVERS PACKETS_PER_SECOND BYTES SECONDS DESTINATION PORT0
 * Receiver i listens on PORT0+i. Prints microseconds of CPU time per packet.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static double cpu(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
  if (argc != 8) return 64;
  int gcm = !strcmp(argv[1], "gcm"), receivers = atoi(argv[2]), rate = atoi(argv[3]), bytes = atoi(argv[4]);
  double seconds = atof(argv[5]);
  unsigned char key[20] = {1}, iv[16] = {2}, plain[2048] = {0x80, 96}, out[64][2048];
  EVP_CIPHER_CTX **cipher = calloc(receivers, sizeof *cipher);
  HMAC_CTX **mac = calloc(receivers, sizeof *mac);
  struct mmsghdr *messages = calloc(receivers, sizeof *messages);
  struct iovec *vectors = calloc(receivers, sizeof *vectors);
  struct sockaddr_in *to = calloc(receivers, sizeof *to);
  int fd = socket(AF_INET, SOCK_DGRAM, 0), size = 4 << 20;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  for (int i = 0; i < receivers; i++) {
    cipher[i] = EVP_CIPHER_CTX_new();
    EVP_EncryptInit_ex(cipher[i], gcm ? EVP_aes_128_gcm() : EVP_aes_128_ctr(), 0, key, iv);
    mac[i] = HMAC_CTX_new();
    HMAC_Init_ex(mac[i], key, 20, EVP_sha1(), 0);
    to[i].sin_family = AF_INET;
    to[i].sin_port = htons(atoi(argv[7]) + i);
    inet_pton(AF_INET, argv[6], &to[i].sin_addr);
  }
  double start = now(), used = cpu();
  long sent = 0, ticks = 0;
  while (now() - start < seconds) {
    long due = (now() - start) * rate;
    for (; ticks < due; ticks++) {
      for (int base = 0; base < receivers; base += 64) {
        int n = receivers - base < 64 ? receivers - base : 64;
        for (int j = 0; j < n; j++) {
          int i = base + j, length = 0;
          unsigned mac_length = 20;
          memcpy(out[j], plain, 12);
          iv[11] = ticks, iv[10] = ticks >> 8;
          EVP_EncryptInit_ex(cipher[i], 0, 0, 0, iv);
          if (gcm) EVP_EncryptUpdate(cipher[i], 0, &length, out[j], 12);
          EVP_EncryptUpdate(cipher[i], out[j] + 12, &length, plain + 12, bytes - 12);
          if (gcm) {
            EVP_EncryptFinal_ex(cipher[i], out[j] + bytes, &length);
            EVP_CIPHER_CTX_ctrl(cipher[i], EVP_CTRL_GCM_GET_TAG, 16, out[j] + bytes);
          } else {
            unsigned char tag[20];
            HMAC_Init_ex(mac[i], 0, 0, 0, 0);
            HMAC_Update(mac[i], out[j], bytes);
            HMAC_Final(mac[i], tag, &mac_length);
            memcpy(out[j] + bytes, tag, 10);
          }
          vectors[j] = (struct iovec){out[j], bytes + (gcm ? 16 : 10)};
          messages[j].msg_hdr = (struct msghdr){.msg_name = &to[i], .msg_namelen = sizeof to[i], .msg_iov = &vectors[j], .msg_iovlen = 1};
        }
        int done = sendmmsg(fd, messages, n, 0);
        if (done > 0) sent += done;
      }
    }
    usleep(1000);
  }
  printf("%.3f\n", (cpu() - used) * 1e6 / sent);
  return 0;
}
