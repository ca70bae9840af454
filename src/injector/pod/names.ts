/** Names, ports and paths that an injected pod shares with a pod whose sidecar was written by hand. */

export const CONTAINER_NAME = 'token-sidecar';

/** In the mode redirect: ends once the system sends connections to the sidecar. */
export const REDIRECT_CONTAINER_NAME = 'token-sidecar-redirect';

export const CREDENTIALS_VOLUME = 'token-sidecar-credentials';
export const CREDENTIALS_PATH = '/var/run/secrets/token-sidecar';

export const CONFIG_VOLUME = 'token-sidecar-config';
export const CONFIG_DIRECTORY = '/etc/token-sidecar';
export const CONFIG_KEY = 'token-sidecar.yaml';

export const CA_VOLUME = 'token-sidecar-ca';
export const CA_DIRECTORY = '/etc/token-sidecar-ca';
export const CA_KEY = 'ca.crt';

/** CAs that profiles name. */
export const AUTHORITIES_PATH = '/etc/token-sidecar-authorities';

/** In memory: the sidecar writes it, the app's containers read it. */
export const TRUST_VOLUME = 'token-sidecar-trust';
export const TRUST_DIRECTORY = '/var/run/token-sidecar/trust';

/** The app's side, on the pod's loopback. */
export const PROXY_PORT = 15_080;
/** Probes and metrics; PodMonitors select by this name. */
export const ADMIN_PORT = 15_081;
/** Where tokens of profiles are requested. */
export const TOKEN_ENDPOINT_PORT = 15_082;
/** Where redirected connections arrive. */
export const REDIRECT_PORT = 15_083;
export const ADMIN_PORT_NAME = 'token-admin';

/** In memory: the sidecar writes the tokens that profiles hand out as files, and the app's containers read them. */
export const TOKENS_VOLUME = 'token-sidecar-tokens';
export const TOKENS_DIRECTORY = '/var/run/token-sidecar/tokens';

/** User and group of the image. */
export const SIDECAR_USER = 65_532;

/**
 * Replaces the image's user in the mode redirect, as many app images have that one too: connections of the sidecar are
 * recognized by its user. Within the 65536 users of a pod with a user namespace.
 */
export const REDIRECT_USER = 15_083;

/** Where the sidecar expects it by default. The kubelet mounts it, even if the rest is read-only. */
export const TERMINATION_LOG = '/dev/termination-log';
