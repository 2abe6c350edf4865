#!/bin/sh
# Fetches the certificate of BLOOM_DOMAIN with certbot, by port 80, and renews it: the service `certificate` of compose.yml. A node
# does not run as root and may not read certbot's files, so it gets copies, each replaced at once; it notices new ones by itself.
set -u
source=${CERTBOT_FOLDER:-/etc/letsencrypt}
target=${CERTIFICATE_FOLDER:-/certificate}

copy() {
  cp "$source/live/$BLOOM_DOMAIN/$1" "$target/.$2" && chmod 400 "$target/.$2" && chown 1000:1000 "$target/.$2" &&
    mv "$target/.$2" "$target/$2"
}

trap 'exit 0' TERM INT
while :; do
  pause=1h
  certbot certonly --standalone --non-interactive --agree-tos --register-unsafely-without-email --keep-until-expiring \
    --config-dir "$source" --cert-name "$BLOOM_DOMAIN" --domain "$BLOOM_DOMAIN" &&
    copy privkey.pem key.pem && copy fullchain.pem cert.pem && pause=12h
  sleep "$pause" &
  wait $!
done
