/** For each alert, time series under which it fires and such under which it must not. */

/** One sample every 30 s from zero on. */
const STEP_SECONDS = 30;

export interface InputSeries {
  readonly series: string;
  readonly values: string;
}

export interface AlertCase {
  readonly alert: string;
  readonly when: string;
  /** The chart's rules of this part; absent: those for plain Prometheus. */
  readonly ofChart?: 'injector' | 'issuer' | 'broker' | 'gateway';
  readonly input: readonly InputSeries[];
  readonly atSeconds: number;
  /** Absent: the alert is silent. */
  readonly fires?: { readonly labels: Readonly<Record<string, string>>; readonly description: string };
}

/** Samples of `value` at each step until `untilSeconds`; undefined is a scrape without the series. */
function series(
  name: string,
  untilSeconds: number,
  value: (seconds: number) => number | undefined | 'stale',
): InputSeries {
  const values: (number | string)[] = [];
  for (let at = 0; at <= untilSeconds; at += STEP_SECONDS) values.push(value(at) ?? '_');
  return { series: name, values: values.join(' ') };
}

const POD = 'namespace="shop", pod="shop-1"';
const CREDENTIAL = `${POD}, credential="default"`;
const CREDENTIAL_LABELS = { namespace: 'shop', pod: 'shop-1', credential: 'default' };
const ROUTE = `${POD}, route="payments"`;
const ROUTE_LABELS = { namespace: 'shop', route: 'payments' };

/** End of the token held at `seconds` when each lives `lifetime` and is renewed at three quarters of it, until `stop`. */
function expiry(seconds: number, lifetime: number, stop = Number.POSITIVE_INFINITY): number {
  const renewals = Math.floor(Math.min(seconds, stop) / (0.75 * lifetime));
  return renewals * 0.75 * lifetime + lifetime;
}

/** The gauges of one credential. */
function token(
  untilSeconds: number,
  gauges: {
    readonly expiry: (seconds: number) => number;
    readonly renewal?: (seconds: number) => number;
    readonly failures?: (seconds: number) => number;
  },
): InputSeries[] {
  return [
    series(`token_sidecar_token_expiry_timestamp_seconds{${CREDENTIAL}}`, untilSeconds, gauges.expiry),
    series(
      `token_sidecar_token_renewal_timestamp_seconds{${CREDENTIAL}}`,
      untilSeconds,
      gauges.renewal ?? ((at) => at + 1),
    ),
    series(
      `token_sidecar_token_refresh_consecutive_failures{${CREDENTIAL}}`,
      untilSeconds,
      gauges.failures ?? (() => 0),
    ),
  ];
}

function proxied(untilSeconds: number, perSecond: number): InputSeries {
  return series(
    `token_sidecar_proxy_requests_total{${ROUTE}, method="GET", code="200"}`,
    untilSeconds,
    (at) => at * perSecond,
  );
}

function rejections(untilSeconds: number, count: (seconds: number) => number | undefined): InputSeries {
  return series(
    `token_sidecar_token_refresh_total{${CREDENTIAL}, result="rejected", reason="retry"}`,
    untilSeconds,
    count,
  );
}

function failures(untilSeconds: number, count: (seconds: number) => number): InputSeries {
  return series(`token_sidecar_token_refresh_consecutive_failures{${CREDENTIAL}}`, untilSeconds, count);
}

function usable(untilSeconds: number, value: (seconds: number) => number): InputSeries {
  return series(`token_sidecar_credentials_usable{${CREDENTIAL}}`, untilSeconds, value);
}

function previousInUse(untilSeconds: number, value: (seconds: number) => number): InputSeries {
  return series(`token_sidecar_credentials_previous_in_use{${CREDENTIAL}}`, untilSeconds, value);
}

function proofs(untilSeconds: number, perSecond: number): InputSeries {
  return series(`token_sidecar_dpop_proofs_total{${CREDENTIAL}}`, untilSeconds, (at) => at * perSecond);
}

function refusedProofs(untilSeconds: number, perSecond: number): InputSeries {
  return series(
    `token_sidecar_dpop_refused_proofs_total{${CREDENTIAL}}`,
    untilSeconds,
    (at) => at * perSecond,
  );
}

const holding = (pods: number): readonly number[] => Array.from({ length: pods }, () => 1);

/** By namespace, whether each of its pods holds a token. */
function fleet(ready: Readonly<Record<string, readonly number[]>>): InputSeries[] {
  return Object.entries(ready).flatMap(([namespace, pods]) =>
    pods.map((value, pod) =>
      series(
        `token_sidecar_token_ready{namespace="${namespace}", pod="${namespace}-${pod}", credential="default"}`,
        600,
        () => value,
      ),
    ),
  );
}

function admissions(untilSeconds: number, perSecond: Readonly<Record<string, number>>): InputSeries[] {
  return Object.entries(perSecond).map(([result, rate]) =>
    series(
      `token_sidecar_injector_admissions_total{result="${result}", reason="none"}`,
      untilSeconds,
      (at) => at * rate,
    ),
  );
}

/** A client certificate of a credential that was issued at `from`. */
function certificate(
  untilSeconds: number,
  from: (seconds: number) => number,
  lifetime: number,
): InputSeries[] {
  const name = (which: string) =>
    `token_sidecar_tls_certificate_${which}_timestamp_seconds{${CREDENTIAL}, file="tls.crt"}`;
  return [
    series(name('expiry'), untilSeconds, (at) => from(at) + lifetime),
    series(name('not_before'), untilSeconds, from),
  ];
}

/** Reviews, ten a second, that all take between `bounds[i - 1]` and `bounds[i]` seconds. */
function admissionDurations(untilSeconds: number, slowest: number): InputSeries[] {
  return [0.01, 1, 5]
    .map((bound) =>
      series(`token_sidecar_injector_admission_duration_seconds_bucket{le="${bound}"}`, untilSeconds, (at) =>
        bound < slowest ? 0 : at * 10,
      ),
    )
    .concat(
      series(
        'token_sidecar_injector_admission_duration_seconds_bucket{le="+Inf"}',
        untilSeconds,
        (at) => at * 10,
      ),
    );
}

function injectorCertificate(untilSeconds: number, end: (seconds: number) => number): InputSeries {
  return series(
    'token_sidecar_injector_certificate_expiry_timestamp_seconds{namespace="token-sidecar", pod="injector-1"}',
    untilSeconds,
    end,
  );
}

const EXPIRING = (left: string) => ({
  labels: CREDENTIAL_LABELS,
  description: `Less than a tenth of the life of the token of credential default in shop/shop-1 is left (${left}) and no renewal has succeeded.`,
});

const REJECTED = {
  labels: CREDENTIAL_LABELS,
  description:
    'The identity provider refuses credential default of shop/shop-1. It does not heal by itself: the Secret or the client at the provider must be put right.',
};

const INJECTOR_DOWN = {
  labels: {},
  description:
    'Pods that ask for the sidecar start without it (failurePolicy Ignore) or do not start at all (Fail).',
};

const INJECTOR_CERTIFICATE = {
  labels: { namespace: 'token-sidecar', pod: 'injector-1' },
  description:
    'The certificate that token-sidecar/injector-1 serves ends within a week and has not been renewed. Once it has ended the API server does not accept the injector any more.',
};

const BROKER_END = 'token_sidecar_broker_certificate_expiry_timestamp_seconds';
const REPLICA = 'job="token-sidecar-broker", instance="10.0.0.9:15081", namespace="shop", pod="broker-1"';

/** A replica of the broker, until it goes. */
function replica(untilSeconds: number, goesAt = Number.POSITIVE_INFINITY): InputSeries {
  return series(`token_sidecar_broker_ready{${REPLICA}}`, untilSeconds, (at) => (at < goesAt ? 1 : 'stale'));
}

function ofReplica(
  name: string,
  untilSeconds: number,
  value: (seconds: number) => number | 'stale',
): InputSeries {
  return series(`token_sidecar_${name}{${REPLICA}, credential="payments/orders"}`, untilSeconds, value);
}

/** A series of a replica of the gateway. */
function atGateway(
  name: string,
  untilSeconds: number,
  value: (seconds: number) => number | 'stale',
  labels = '',
): InputSeries {
  const target = 'job="gateways", instance="10.0.0.7:15081", namespace="edge", pod="gateway-1"';
  return series(`token_sidecar_${name}{${target}${labels && `, ${labels}`}}`, untilSeconds, value);
}

/** A replica of the gateway that answers for ten minutes, and not from then on. */
function lostReplica(job: string, pod = 'gateway-1'): InputSeries[] {
  const target = `job="${job}", instance="10.0.0.7:15081", namespace="edge", pod="${pod}"`;
  const once = (at: number): number | 'stale' => (at < 600 ? 1 : 'stale');
  return [
    series(`up{${target}}`, 1800, (at) => (at < 600 ? 1 : 0)),
    series(`token_sidecar_gateway_callers{${target}}`, 1800, once),
    series(`token_sidecar_token_ready{${target}, credential="default"}`, 1800, once),
  ];
}

/** A replica of a gateway that is up. */
function gatewayPod(pod: string): InputSeries {
  return series(`token_sidecar_gateway_callers{namespace="edge", pod="${pod}"}`, 86_400, () => 0);
}

const BROKER_DOWN = {
  labels: {},
  description:
    'Pods whose credentials are via the broker get no tokens. Sidecars serve the ones they hold until those end.',
};

function brokerCertificate(untilSeconds: number, end: (seconds: number) => number): InputSeries {
  return series(`${BROKER_END}{namespace="token-sidecar", pod="broker-1"}`, untilSeconds, end);
}

/** Requests to the broker, as many at each step as it says. */
function asked(untilSeconds: number, results: Readonly<Record<string, number>>): InputSeries[] {
  return Object.entries(results).map(([result, each]) =>
    series(
      `token_sidecar_broker_requests_total{result="${result}"}`,
      untilSeconds,
      (at) => (at / STEP_SECONDS) * each,
    ),
  );
}

const INJECTOR_END = 'token_sidecar_injector_certificate_expiry_timestamp_seconds';

const PODS_WITHOUT_SIDECAR = {
  labels: { namespace: 'token-sidecar' },
  description:
    '3 pods ask for the sidecar and run without it. Their calls to loopback are refused. Events on their owners name them.',
};

/** A replica whose certificate callers reject three times at each step of the first hour, and the reviews that it answers. */
function rejectedCertificate(reviews: (seconds: number) => number): InputSeries[] {
  const replica = 'namespace="token-sidecar", pod="injector-1"';
  return [
    series(
      `token_sidecar_injector_connections_dropped_total{${replica}, reason="untrusted"}`,
      7200,
      (at) => (Math.min(at, 3600) / STEP_SECONDS) * 3,
    ),
    series(
      `token_sidecar_injector_admissions_total{${replica}, result="injected", reason="native"}`,
      7200,
      reviews,
    ),
  ];
}

const podsWithoutSidecar = (pod: string, at: (seconds: number) => number) =>
  series(`token_sidecar_injector_pods_without_sidecar{namespace="token-sidecar", pod="${pod}"}`, 1200, at);

const ISSUER_DOWN = {
  labels: {},
  description: 'No tokens are issued. Sidecars serve the ones they hold until those end.',
};

export const ALERT_CASES: readonly AlertCase[] = [
  {
    alert: 'TokenSidecarTokenExpiring',
    when: 'a token of an hour nears its end and renewals fail',
    input: token(3600, { expiry: () => 3600, failures: (at) => (at < 2700 ? 0 : 4) }),
    atSeconds: 3330,
    fires: EXPIRING('4m 30s'),
  },
  {
    alert: 'TokenSidecarTokenExpiring',
    when: 'a token of an hour nears its end and the planned renewal never came',
    input: token(3600, { expiry: () => 3600, renewal: () => 2700 }),
    atSeconds: 3330,
    fires: EXPIRING('4m 30s'),
  },
  {
    alert: 'TokenSidecarTokenExpiring',
    when: 'a token of five minutes has ended after healthy renewals',
    input: token(1800, { expiry: (at) => expiry(at, 300, 900), failures: (at) => (at < 1125 ? 0 : 5) }),
    atSeconds: 1260,
    fires: EXPIRING('-1m 0s'),
  },
  {
    alert: 'TokenSidecarTokenExpiring',
    when: 'renewals fail and most of the life is left',
    input: token(3600, { expiry: () => 3600, failures: () => 4 }),
    atSeconds: 3000,
  },
  {
    alert: 'TokenSidecarTokenExpiring',
    when: 'tokens of a minute are renewed in time',
    input: token(3600, { expiry: (at) => expiry(at, 60) }),
    atSeconds: 3600,
  },
  {
    alert: 'TokenSidecarTokenExpiring',
    when: 'the life of tokens was cut from an hour to five minutes and they are renewed in time',
    input: token(7200, { expiry: (at) => (at < 3600 ? expiry(at, 3600) : expiry(at, 300)) }),
    atSeconds: 5400,
  },
  {
    alert: 'TokenSidecarTokenUnavailable',
    when: 'no token is held',
    input: [series(`token_sidecar_token_ready{${CREDENTIAL}}`, 600, () => 0)],
    atSeconds: 120,
    fires: {
      labels: CREDENTIAL_LABELS,
      description:
        'shop/shop-1 holds no valid token for credential default. Requests on its routes are answered 503 token_unavailable.',
    },
  },
  {
    alert: 'TokenSidecarTokenUnavailable',
    when: 'no token is held for a credential that is not required',
    input: [
      series(`token_sidecar_token_ready{${CREDENTIAL}}`, 600, () => 0),
      series(`token_sidecar_credential_required{${CREDENTIAL}}`, 600, () => 0),
    ],
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarTokenUnavailable',
    when: 'no token is held for one that is required, beside one that is not',
    input: [
      series(`token_sidecar_token_ready{${CREDENTIAL}}`, 600, () => 0),
      series(`token_sidecar_credential_required{${CREDENTIAL}}`, 600, () => 1),
      series(`token_sidecar_token_ready{${POD}, credential="mail"}`, 600, () => 0),
      series(`token_sidecar_credential_required{${POD}, credential="mail"}`, 600, () => 0),
    ],
    atSeconds: 120,
    fires: {
      labels: CREDENTIAL_LABELS,
      description:
        'shop/shop-1 holds no valid token for credential default. Requests on its routes are answered 503 token_unavailable.',
    },
  },
  {
    alert: 'TokenSidecarTokenUnavailable',
    when: 'a new pod had to wait a minute for its first token',
    input: [series(`token_sidecar_token_ready{${CREDENTIAL}}`, 600, (at) => (at <= 60 ? 0 : 1))],
    atSeconds: 300,
  },
  {
    alert: 'TokenSidecarRefreshFailing',
    when: 'grants have failed in a row for five minutes',
    input: [failures(600, () => 7)],
    atSeconds: 300,
    fires: {
      labels: CREDENTIAL_LABELS,
      description:
        'The last 7 grants for credential default in shop/shop-1 failed. A token that is held is served until it ends.',
    },
  },
  {
    alert: 'TokenSidecarRefreshFailing',
    when: 'a provider was away for four minutes',
    input: [failures(1200, (at) => (at < 240 ? 6 : 0))],
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarCredentialsRejected',
    when: 'the very first grant is rejected, which starts the counter at one',
    input: [rejections(1200, (at) => (at < 600 ? undefined : 1)), failures(1200, (at) => (at < 600 ? 0 : 1))],
    atSeconds: 750,
    fires: REJECTED,
  },
  {
    alert: 'TokenSidecarCredentialsRejected',
    when: 'grants go on being rejected every ten minutes',
    input: [
      rejections(7200, (at) => 1 + Math.floor(at / 600)),
      failures(7200, (at) => 1 + Math.floor(at / 600)),
    ],
    atSeconds: 7200,
    fires: REJECTED,
  },
  {
    alert: 'TokenSidecarCredentialsRejected',
    when: 'a rotation reached the provider before the pod, and the next grant succeeded',
    input: [
      rejections(1200, (at) => (at < 600 ? undefined : 1)),
      failures(1200, (at) => (at === 600 ? 1 : 0)),
    ],
    atSeconds: 750,
  },
  {
    alert: 'TokenSidecarCredentialsRejected',
    when: 'the newest secret is wrong, and the one before it goes on getting tokens',
    input: [
      rejections(7200, (at) => 1 + Math.floor(at / 300)),
      failures(7200, (at) => (at % 300 < 225 ? 0 : 1)),
      previousInUse(7200, () => 1),
    ],
    atSeconds: 7200,
    fires: REJECTED,
  },
  {
    alert: 'TokenSidecarCredentialsRejected',
    when: 'the newest secret has come to the provider, too',
    input: [
      rejections(7200, () => 3),
      failures(7200, () => 0),
      previousInUse(7200, (at) => (at < 3600 ? 1 : 0)),
    ],
    atSeconds: 7200,
  },
  {
    alert: 'TokenSidecarCredentialsRejected',
    when: 'grants fail for another reason, long after a rejection',
    input: [rejections(7200, () => 3), failures(7200, (at) => (at < 6000 ? 0 : 5))],
    atSeconds: 7200,
  },
  {
    alert: 'TokenSidecarDown',
    when: 'a sidecar cannot be scraped',
    input: [series(`up{job="token-sidecar", ${POD}}`, 600, () => 0)],
    atSeconds: 300,
    fires: {
      labels: { job: 'token-sidecar', namespace: 'shop', pod: 'shop-1' },
      description:
        'Prometheus cannot scrape the sidecar of shop/shop-1; it may be crashing, and its app without a proxy.',
    },
  },
  {
    alert: 'TokenSidecarDown',
    when: 'the sidecar is up and another job is down',
    input: [
      series(`up{job="token-sidecar", ${POD}}`, 600, () => 1),
      series(`up{job="shop", ${POD}}`, 600, () => 0),
    ],
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarDown',
    when: 'a sidecar that was scraped by its annotations, among other pods, cannot be scraped any more',
    input: [
      series(`up{job="kubernetes-pods", instance="10.0.0.1:15081", ${POD}}`, 1200, (at) =>
        at < 600 ? 1 : 0,
      ),
      series(
        `token_sidecar_token_ready{job="kubernetes-pods", instance="10.0.0.1:15081", ${CREDENTIAL}}`,
        1200,
        (at) => (at < 600 ? 1 : 'stale'),
      ),
      series(
        'up{job="kubernetes-pods", instance="10.0.0.2:9090", namespace="shop", pod="other"}',
        1200,
        () => 0,
      ),
    ],
    atSeconds: 1200,
    fires: {
      labels: { job: 'kubernetes-pods', instance: '10.0.0.1:15081', namespace: 'shop', pod: 'shop-1' },
      description:
        'Prometheus cannot scrape the sidecar of shop/shop-1; it may be crashing, and its app without a proxy.',
    },
  },
  {
    alert: 'TokenSidecarSecretUnusable',
    when: 'the Secret lacks a key for five minutes',
    input: [usable(600, () => 0)],
    atSeconds: 300,
    fires: {
      labels: CREDENTIAL_LABELS,
      description:
        'What is mounted for credential default in shop/shop-1 cannot be used: a file is missing, empty or not what it should be. What was read before stays in use; a pod that starts now gets no token.',
    },
  },
  {
    alert: 'TokenSidecarSecretUnusable',
    when: 'the kubelet took four minutes to write it whole',
    input: [usable(1200, (at) => (at < 240 ? 0 : 1))],
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarTokenFileFailing',
    when: 'the volume has been full for a minute',
    input: [series(`token_sidecar_token_file_current{${CREDENTIAL}}`, 300, () => 0)],
    atSeconds: 60,
    fires: {
      labels: CREDENTIAL_LABELS,
      description:
        'The file of the token of credential default in shop/shop-1 cannot be written or removed. Its readers get the token before until that ends, and then none.',
    },
  },
  {
    alert: 'TokenSidecarTokenFileFailing',
    when: 'it could be written at the next try',
    input: [series(`token_sidecar_token_file_current{${CREDENTIAL}}`, 300, (at) => (at < 15 ? 0 : 1))],
    atSeconds: 120,
  },
  {
    alert: 'TokenSidecarCertificateExpiring',
    when: 'a client certificate was not replaced in two pods of a namespace',
    input: ['shop-1', 'shop-2'].map((pod) =>
      series(
        `token_sidecar_tls_certificate_expiry_timestamp_seconds{namespace="shop", pod="${pod}", route="payments", file="certFile"}`,
        7200,
        () => 3 * 86_400 + 7200,
      ),
    ),
    atSeconds: 7200,
    fires: {
      labels: { namespace: 'shop', route: 'payments', file: 'certFile' },
      description:
        'certFile of route payments in namespace shop ends in 3d 0h 0m 0s and has not been replaced.',
    },
  },
  {
    alert: 'TokenSidecarCertificateExpiring',
    when: 'an authority of a credential has a month left',
    input: [
      series(
        `token_sidecar_tls_certificate_expiry_timestamp_seconds{${CREDENTIAL}, file="caFile"}`,
        7200,
        () => 30 * 86_400,
      ),
    ],
    atSeconds: 7200,
  },
  {
    alert: 'TokenSidecarCertificateExpiring',
    when: 'certificates live for six hours and are renewed after two thirds of it',
    input: certificate(21_600, (at) => Math.floor(at / 14_400) * 14_400, 21_600),
    atSeconds: 21_600,
  },
  {
    alert: 'TokenSidecarCertificateExpiring',
    when: 'one of six hours has not been renewed',
    input: certificate(21_600, () => 0, 21_600),
    atSeconds: 21_000,
    fires: {
      labels: { namespace: 'shop', credential: 'default', file: 'tls.crt' },
      description:
        'tls.crt of credential default in namespace shop ends in 10m 0s and has not been replaced.',
    },
  },
  {
    alert: 'TokenSidecarCertificateExpiring',
    when: 'one of a year has six days left',
    input: certificate(7200, () => 7200 + (6 - 365) * 86_400, 365 * 86_400),
    atSeconds: 7200,
    fires: {
      labels: { namespace: 'shop', credential: 'default', file: 'tls.crt' },
      description:
        'tls.crt of credential default in namespace shop ends in 6d 0h 0m 0s and has not been replaced.',
    },
  },
  {
    alert: 'TokenSidecarFleetWithoutTokens',
    when: 'a tenth of the fleet has no token',
    input: fleet({ shop: [0, 0, ...holding(18)], billing: [0, 0, ...holding(18)] }),
    atSeconds: 120,
    fires: {
      labels: {},
      description:
        '10% of all sidecars have no token that may be sent, or one that is about to end and is not being renewed. Requests of their apps are answered 503.',
    },
  },
  {
    alert: 'TokenSidecarFleetWithoutTokens',
    when: 'the only sidecar there is has none',
    input: fleet({ shop: [0] }),
    atSeconds: 120,
    fires: {
      labels: {},
      description:
        '100% of all sidecars have no token that may be sent, or one that is about to end and is not being renewed. Requests of their apps are answered 503.',
    },
  },
  {
    alert: 'TokenSidecarFleetWithoutTokens',
    when: 'one namespace of many has a wrong Secret, and one pod elsewhere has trouble of its own',
    input: fleet({ shop: [0, 0], billing: [0, 1, 1, 1], search: holding(14) }),
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarNamespaceWithoutTokens',
    when: 'it alone of a small fleet has a wrong Secret',
    input: fleet({ shop: [0, 0], billing: holding(4), search: holding(14) }),
    atSeconds: 600,
    fires: {
      labels: { namespace: 'shop' },
      description:
        '100% of the sidecars of namespace shop have no token that may be sent, or one that is about to end and is not being renewed. Requests of their apps are answered 503.',
    },
  },
  {
    alert: 'TokenSidecarFleetWithoutTokens',
    when: 'one pod of three has none: a ticket says so',
    input: fleet({ shop: [0, 1, 1] }),
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarFleetWithoutTokens',
    when: 'the credentials that have no token are not required',
    input: [
      ...fleet({ shop: [0, 0, 0] }),
      ...[0, 1, 2].map((pod) =>
        series(
          `token_sidecar_credential_required{namespace="shop", pod="shop-${pod}", credential="default"}`,
          600,
          () => 0,
        ),
      ),
    ],
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarNamespaceWithoutTokens',
    when: 'half of a small namespace of a large fleet has no token',
    input: fleet({ shop: [0, 0, 1, 1], billing: holding(96) }),
    atSeconds: 300,
    fires: {
      labels: { namespace: 'shop' },
      description:
        '50% of the sidecars of namespace shop have no token that may be sent, or one that is about to end and is not being renewed. Requests of their apps are answered 503.',
    },
  },
  {
    alert: 'TokenSidecarNamespaceWithoutTokens',
    when: 'the trouble is the whole fleet’s, which has a page of its own',
    input: fleet({ shop: [0, 0, 0, 0], billing: [0, 0, 0, 0] }),
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarTokenUnavailable',
    when: 'the credentials are rejected, which has a ticket of its own',
    input: [
      series(`token_sidecar_token_ready{${CREDENTIAL}}`, 1200, () => 0),
      rejections(1200, (at) => at / 60),
      failures(1200, (at) => at / 60),
    ],
    atSeconds: 1200,
  },
  {
    alert: 'TokenSidecarRefreshFailing',
    when: 'the Secret cannot be used, which has a ticket of its own',
    input: [failures(1200, () => 7), usable(1200, () => 0)],
    atSeconds: 1200,
  },
  {
    alert: 'TokenSidecarAbsent',
    when: 'a namespace has lost its sidecars and another has not',
    input: [
      series(`token_sidecar_token_ready{${CREDENTIAL}}`, 600, (at) => (at < 600 ? 1 : 'stale')),
      series(
        'token_sidecar_token_ready{namespace="billing", pod="billing-1", credential="default"}',
        3600,
        () => 1,
      ),
    ],
    atSeconds: 1800,
    fires: {
      labels: { namespace: 'shop' },
      description:
        'Namespace shop had sidecars within the last six hours and has none now: they were removed, are not injected any more, or are not scraped.',
    },
  },
  {
    alert: 'TokenSidecarAbsent',
    when: 'one pod of a namespace took the place of another',
    input: [
      series(`token_sidecar_token_ready{${CREDENTIAL}}`, 600, (at) => (at < 600 ? 1 : 'stale')),
      series('token_sidecar_token_ready{namespace="shop", pod="shop-2", credential="default"}', 3600, (at) =>
        at < 630 ? undefined : 1,
      ),
    ],
    atSeconds: 1800,
  },
  {
    alert: 'TokenSidecarNotInjected',
    when: 'an annotated pod has only its own container',
    input: [
      series(`kube_pod_annotations{${POD}, annotation_token_sidecar_dev_inject="true"}`, 600, () => 1),
      series(`kube_pod_container_info{${POD}, container="app"}`, 600, () => 1),
    ],
    atSeconds: 300,
    fires: {
      labels: { namespace: 'shop', pod: 'shop-1', annotation_token_sidecar_dev_inject: 'true' },
      description:
        'shop/shop-1 carries token-sidecar.dev/inject: "true" but no container named token-sidecar. Its calls to loopback are refused.',
    },
  },
  {
    alert: 'TokenSidecarNotInjected',
    when: 'an annotated pod has a native sidecar',
    input: [
      series(`kube_pod_annotations{${POD}, annotation_token_sidecar_dev_inject="true"}`, 600, () => 1),
      series(`kube_pod_init_container_info{${POD}, container="token-sidecar"}`, 600, () => 1),
    ],
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarNotInjected',
    when: 'an annotated pod has a classic sidecar',
    input: [
      series(`kube_pod_annotations{${POD}, annotation_token_sidecar_dev_inject="true"}`, 600, () => 1),
      series(`kube_pod_container_info{${POD}, container="token-sidecar"}`, 600, () => 1),
    ],
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarUpstreamUnauthorized',
    when: 'a tenth of the requests is refused by the upstream',
    input: [
      proxied(1800, 10),
      series(`token_sidecar_proxy_upstream_unauthorized_total{${ROUTE}}`, 1800, (at) => at),
    ],
    atSeconds: 1200,
    fires: {
      labels: ROUTE_LABELS,
      description:
        '10% of the requests on route payments in namespace shop are answered 401 by the upstream although they carry a token.',
    },
  },
  {
    alert: 'TokenSidecarUpstreamUnauthorized',
    when: 'a hundredth of the requests is refused by the upstream',
    input: [
      proxied(1800, 10),
      series(`token_sidecar_proxy_upstream_unauthorized_total{${ROUTE}}`, 1800, (at) => at / 10),
    ],
    atSeconds: 1800,
  },
  {
    alert: 'TokenSidecarProofsRefused',
    when: 'one of two upstreams of a credential refuses every proof',
    input: [proofs(1800, 10), refusedProofs(1800, 5)],
    atSeconds: 1200,
    fires: {
      labels: { namespace: 'shop', credential: 'default' },
      description:
        '50% of the proofs for tokens of credential default in namespace shop are refused by an upstream. It refuses the proof, not the token: clock, URL or nonce.',
    },
  },
  {
    alert: 'TokenSidecarProofsRefused',
    when: 'a hundredth of the proofs is refused',
    input: [proofs(1800, 10), refusedProofs(1800, 0.1)],
    atSeconds: 1800,
  },
  {
    alert: 'TokenSidecarProofsRefused',
    when: 'no request is sent',
    input: [proofs(1800, 0), refusedProofs(1800, 0)],
    atSeconds: 1800,
  },
  {
    alert: 'TokenSidecarProxyErrors',
    when: 'half of the requests end in an error of the proxy',
    input: [
      proxied(1800, 10),
      series(
        `token_sidecar_proxy_errors_total{${ROUTE}, error="upstream_unreachable"}`,
        1800,
        (at) => at * 5,
      ),
    ],
    atSeconds: 1200,
    fires: {
      labels: ROUTE_LABELS,
      description:
        '50% of the requests on route payments in namespace shop end in an error made by the proxy.',
    },
  },
  {
    alert: 'TokenSidecarProxyErrors',
    when: 'there was never an error',
    input: [proxied(1800, 10)],
    atSeconds: 1800,
  },
  {
    alert: 'TokenSidecarInjectorDown',
    when: 'the chart installed it and no replica ever came up',
    ofChart: 'injector',
    input: [],
    atSeconds: 1800,
    fires: INJECTOR_DOWN,
  },
  {
    alert: 'TokenSidecarInjectorDown',
    when: 'it has been away for hours',
    ofChart: 'injector',
    input: [series(`${INJECTOR_END}{pod="injector-1"}`, 600, (at) => (at < 600 ? 9e9 : 'stale'))],
    atSeconds: 25_200,
    fires: INJECTOR_DOWN,
  },
  {
    alert: 'TokenSidecarInjectorDown',
    when: 'the chart’s is up, whatever job scrapes it',
    ofChart: 'injector',
    input: [series(`${INJECTOR_END}{pod="injector-1"}`, 1800, () => 9e9)],
    atSeconds: 1800,
  },
  {
    alert: 'TokenSidecarInjectorDown',
    when: 'it was seen hours ago, by rules that do not know whether it is installed',
    input: [series(`${INJECTOR_END}{pod="injector-1"}`, 600, (at) => (at < 600 ? 9e9 : 'stale'))],
    atSeconds: 25_200,
    fires: INJECTOR_DOWN,
  },
  {
    alert: 'TokenSidecarInjectorDown',
    when: 'it was never installed',
    input: [],
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarInjectorDown',
    when: 'there was one, scraped by a job of another name, and there is none any more',
    input: [
      series(`${INJECTOR_END}{job="kubernetes-pods", pod="injector-1"}`, 600, (at) =>
        at < 300 ? 9e9 : 'stale',
      ),
    ],
    atSeconds: 900,
    fires: INJECTOR_DOWN,
  },
  {
    alert: 'TokenSidecarInjectorDown',
    when: 'every replica is down',
    input: ['injector-1', 'injector-2'].map((pod) =>
      series(`up{job="token-sidecar-injector", pod="${pod}"}`, 600, () => 0),
    ),
    atSeconds: 300,
    fires: INJECTOR_DOWN,
  },
  {
    alert: 'TokenSidecarInjectorDown',
    when: 'one of two replicas is down',
    input: [
      ...['injector-1', 'injector-2'].map((pod, index) =>
        series(`up{job="token-sidecar-injector", pod="${pod}"}`, 600, () => index),
      ),
      series(`${INJECTOR_END}{job="token-sidecar-injector", pod="injector-2"}`, 600, () => 9e9),
    ],
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarInjectorFailing',
    when: 'one admission review in twenty ends in an error',
    input: admissions(1800, { injected: 19, error: 1 }),
    atSeconds: 1200,
    fires: { labels: {}, description: '5% of the admission reviews end in an error of the injector.' },
  },
  {
    alert: 'TokenSidecarInjectorFailing',
    when: 'pods are refused for their annotations',
    input: admissions(1800, { injected: 1, rejected: 10, error: 0 }),
    atSeconds: 1800,
  },
  {
    alert: 'TokenSidecarInjectorSlow',
    when: 'reviews take seconds',
    input: admissionDurations(1800, 5),
    atSeconds: 1800,
    fires: {
      labels: {},
      description:
        'The slowest hundredth of the admission reviews takes 4.96s; the API server gives up after the timeout of the webhook, 5 s by default.',
    },
  },
  {
    alert: 'TokenSidecarInjectorSlow',
    when: 'reviews take milliseconds',
    input: admissionDurations(1800, 0.01),
    atSeconds: 1800,
  },
  {
    alert: 'TokenSidecarInjectorCertificateExpiring',
    when: 'a certificate was not renewed',
    input: [injectorCertificate(7200, () => 7 * 86_400 + 1800)],
    atSeconds: 5700,
    fires: INJECTOR_CERTIFICATE,
  },
  {
    alert: 'TokenSidecarInjectorCertificateExpiring',
    when: 'there is no certificate',
    input: [injectorCertificate(3600, () => 0)],
    atSeconds: 3600,
    fires: INJECTOR_CERTIFICATE,
  },
  {
    alert: 'TokenSidecarInjectorCertificateExpiring',
    when: 'a certificate is renewed with days left',
    input: [injectorCertificate(7200, (at) => (at < 3600 ? 7 * 86_400 + 1800 : 90 * 86_400))],
    atSeconds: 7200,
  },
  {
    alert: 'TokenSidecarInjectorUntrusted',
    when: 'API servers reject the certificate, and no review is answered',
    input: rejectedCertificate(() => 7),
    atSeconds: 3600,
    fires: {
      labels: { namespace: 'token-sidecar', pod: 'injector-1' },
      description:
        'Callers of token-sidecar/injector-1 broke off the TLS handshake because of its certificate, and it has answered no review for ten minutes. If they are API servers, pods that ask for the sidecar start without it or do not start at all.',
    },
  },
  {
    alert: 'TokenSidecarInjectorUntrusted',
    when: 'a stranger rejects it while reviews are answered',
    input: rejectedCertificate((at) => at / STEP_SECONDS),
    atSeconds: 3600,
  },
  {
    alert: 'TokenSidecarInjectorUntrusted',
    when: 'nobody has rejected it for half an hour',
    input: rejectedCertificate(() => 7),
    atSeconds: 5700,
  },
  {
    alert: 'TokenSidecarPodsWithoutSidecar',
    when: 'the replica that looks finds some',
    input: [podsWithoutSidecar('injector-1', () => 3), podsWithoutSidecar('injector-2', () => 0)],
    atSeconds: 900,
    fires: PODS_WITHOUT_SIDECAR,
  },
  {
    alert: 'TokenSidecarPodsWithoutSidecar',
    when: 'they have been made anew',
    input: [podsWithoutSidecar('injector-1', (at) => (at < 300 ? 3 : 0))],
    atSeconds: 1200,
  },
  {
    alert: 'TokenSidecarIssuerDown',
    when: 'the only replica is down',
    input: [series('up{job="token-sidecar-issuer", pod="issuer-1"}', 600, () => 0)],
    atSeconds: 120,
    fires: ISSUER_DOWN,
  },
  {
    alert: 'TokenSidecarIssuerDown',
    when: 'the issuer is up',
    input: [
      series('up{job="token-sidecar-issuer", pod="issuer-1"}', 600, () => 1),
      series('token_sidecar_issuer_clients{job="token-sidecar-issuer", pod="issuer-1"}', 600, () => 3),
    ],
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarIssuerDown',
    when: 'the chart installed it and no replica ever came up',
    ofChart: 'issuer',
    input: [],
    atSeconds: 1800,
    fires: ISSUER_DOWN,
  },
  {
    alert: 'TokenSidecarIssuerDown',
    when: 'it has been away for hours',
    ofChart: 'issuer',
    input: [series('token_sidecar_issuer_clients{pod="issuer-1"}', 600, (at) => (at < 600 ? 9e9 : 'stale'))],
    atSeconds: 25_200,
    fires: ISSUER_DOWN,
  },
  {
    alert: 'TokenSidecarIssuerDown',
    when: 'the chart’s is up, whatever job scrapes it',
    ofChart: 'issuer',
    input: [series('token_sidecar_issuer_clients{pod="issuer-1"}', 1800, () => 9e9)],
    atSeconds: 1800,
  },
  {
    alert: 'TokenSidecarIssuerDown',
    when: 'it was seen hours ago, by rules that do not know whether it is installed',
    input: [series('token_sidecar_issuer_clients{pod="issuer-1"}', 600, (at) => (at < 600 ? 9e9 : 'stale'))],
    atSeconds: 25_200,
    fires: ISSUER_DOWN,
  },
  {
    alert: 'TokenSidecarIssuerDown',
    when: 'it was never installed',
    input: [],
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarBrokerDown',
    when: 'the chart installed it and no replica ever came up',
    ofChart: 'broker',
    input: [],
    atSeconds: 1800,
    fires: BROKER_DOWN,
  },
  {
    alert: 'TokenSidecarBrokerDown',
    when: 'every replica is down',
    input: ['broker-1', 'broker-2'].map((pod) =>
      series(`up{job="token-sidecar-broker", pod="${pod}"}`, 600, () => 0),
    ),
    atSeconds: 120,
    fires: BROKER_DOWN,
  },
  {
    alert: 'TokenSidecarBrokerDown',
    when: 'one of two replicas is down',
    input: [
      ...['broker-1', 'broker-2'].map((pod, index) =>
        series(`up{job="token-sidecar-broker", pod="${pod}"}`, 600, () => index),
      ),
      series('token_sidecar_broker_ready{job="token-sidecar-broker", pod="broker-2"}', 600, () => 1),
    ],
    atSeconds: 600,
  },
  ...([undefined, 'broker'] as const).flatMap((ofChart): AlertCase[] => {
    const rules = ofChart === undefined ? {} : { ofChart };
    const ready = (pod: string, value: number) =>
      series(`token_sidecar_broker_ready{job="token-sidecar-broker", pod="${pod}"}`, 600, () => value);
    return [
      {
        alert: 'TokenSidecarBrokerDown',
        when: 'every replica is up and none gets ready',
        ...rules,
        input: [
          ...['broker-1', 'broker-2'].map((pod) =>
            series(`up{job="token-sidecar-broker", pod="${pod}"}`, 600, () => 1),
          ),
          ready('broker-1', 0),
          ready('broker-2', 0),
        ],
        atSeconds: 120,
        fires: BROKER_DOWN,
      },
      {
        alert: 'TokenSidecarBrokerDown',
        when: 'one of two replicas is ready',
        ...rules,
        input: [ready('broker-1', 0), ready('broker-2', 1)],
        atSeconds: 600,
      },
    ];
  }),
  {
    alert: 'TokenSidecarBrokerDown',
    when: 'it was never installed',
    input: [],
    atSeconds: 600,
  },
  ...(['perhaps', 'broker'] as const).flatMap((where): AlertCase[] => {
    const rules = where === 'perhaps' ? {} : { ofChart: where };
    const labelsOf = (pod: string) =>
      `job="token-sidecar-broker", instance="${pod}:15081", namespace="token-sidecar", pod="${pod}"`;
    const ready = (pod: string, value: (at: number) => number) =>
      series(`token_sidecar_broker_ready{${labelsOf(pod)}}`, 1800, value);
    const up = (pod: string, value: number) => series(`up{${labelsOf(pod)}}`, 1800, () => value);
    const fires = {
      labels: { namespace: 'token-sidecar', pod: 'broker-1' },
      description:
        'The replica token-sidecar/broker-1 of the broker is not ready, or cannot be scraped, while another is. The others do its work, and there is one less to lose.',
    };
    const alert = 'TokenSidecarBrokerReplicaNotReady';
    return [
      {
        alert,
        when: 'one of two replicas is never ready',
        ...rules,
        input: [ready('broker-1', () => 0), ready('broker-2', () => 1), up('broker-1', 1), up('broker-2', 1)],
        atSeconds: 660,
        fires,
      },
      {
        alert,
        when: 'one of two replicas cannot be scraped',
        ...rules,
        input: [ready('broker-2', () => 1), up('broker-1', 0), up('broker-2', 1)],
        atSeconds: 660,
        fires,
      },
      {
        alert,
        when: 'a replica takes minutes to be ready',
        ...rules,
        input: [ready('broker-1', (at) => (at < 480 ? 0 : 1)), ready('broker-2', () => 1)],
        atSeconds: 900,
      },
      {
        alert,
        when: 'no replica is ready, which is a page of its own',
        ...rules,
        input: [ready('broker-1', () => 0), ready('broker-2', () => 0)],
        atSeconds: 1200,
      },
    ];
  }),
  {
    alert: 'TokenSidecarBrokerFailing',
    when: 'the provider is away for one request in ten',
    input: asked(1800, { given: 9, temporarily_unavailable: 1 }),
    atSeconds: 1200,
    fires: {
      labels: {},
      description:
        '10% of the requests of pods that may have a token end without one for a reason of the broker, the cluster or the provider.',
    },
  },
  {
    alert: 'TokenSidecarBrokerFailing',
    when: 'the provider is away, amid a flood of requests for what nobody may have',
    input: asked(1800, { given: 9, temporarily_unavailable: 1, invalid_client: 500, too_many_requests: 500 }),
    atSeconds: 1200,
    fires: {
      labels: {},
      description:
        '10% of the requests of pods that may have a token end without one for a reason of the broker, the cluster or the provider.',
    },
  },
  {
    alert: 'TokenSidecarBrokerFailing',
    when: 'pods ask for what they may not have',
    input: asked(1800, { given: 1, unauthorized_client: 10, invalid_client: 10, temporarily_unavailable: 0 }),
    atSeconds: 1800,
  },
  {
    alert: 'TokenSidecarBrokerCertificateExpiring',
    when: 'a certificate was not renewed',
    input: [brokerCertificate(7200, () => 7 * 86_400 + 1800)],
    atSeconds: 5700,
    fires: {
      labels: { namespace: 'token-sidecar', pod: 'broker-1' },
      description:
        'The certificate that token-sidecar/broker-1 serves ends within a week and has not been renewed. Once it has ended no sidecar takes a token from there.',
    },
  },
  {
    alert: 'TokenSidecarBrokerCertificateExpiring',
    when: 'a certificate is renewed with days left',
    input: [brokerCertificate(7200, (at) => (at < 3600 ? 7 * 86_400 + 1800 : 90 * 86_400))],
    atSeconds: 7200,
  },
  {
    alert: 'TokenSidecarGatewayDown',
    when: 'the only replica is gone',
    input: [atGateway('gateway_callers', 1800, (at) => (at < 600 ? 3 : 'stale'))],
    atSeconds: 1200,
    fires: {
      labels: { namespace: 'edge' },
      description:
        'Namespace edge had a gateway within the last six hours, and none of its replicas answers now: callers reach none of its routes.',
    },
  },
  ...(
    [
      ['of a Deployment', 'old-gateway-6d4b75c9f4-x7kzv', 'edge-gateway-7c9f8d6b5d-2xk4z'],
      ['of a DaemonSet', 'old-gateway-x7kzv', 'edge-gateway-2xk4z'],
    ] as const
  ).flatMap(([of, lost, other]): AlertCase[] => {
    const input = [
      ...lostReplica('gateways', lost),
      series(`token_sidecar_gateway_callers{namespace="edge", pod="${other}"}`, 1800, () => 0),
    ];
    const labels = { namespace: 'edge', gateway: 'old-gateway' };
    const when = `the only replica ${of} is gone, and another gateway of the namespace is up`;
    return [
      {
        alert: 'TokenSidecarGatewayDown',
        when,
        input,
        atSeconds: 1200,
        fires: {
          labels,
          description:
            'Namespace edge had a gateway old-gateway within the last six hours, and none of its replicas answers now: callers reach none of its routes.',
        },
      },
      {
        alert: 'TokenSidecarGatewayDown',
        when: `the chart has installed both, and ${when}`,
        ofChart: 'gateway',
        input,
        atSeconds: 1200,
        fires: {
          labels,
          description:
            'None of the replicas of the gateway old-gateway in namespace edge answers: callers reach none of its routes.',
        },
      },
      { alert: 'TokenSidecarGatewayReplicaDown', when, input, atSeconds: 1200 },
    ];
  }),
  {
    alert: 'TokenSidecarGatewayDown',
    when: 'a new ReplicaSet takes the place of another',
    input: [
      ...lostReplica('gateways', 'edge-gateway-6d4b75c9f4-x7kzv'),
      series(
        'token_sidecar_gateway_callers{namespace="edge", pod="edge-gateway-7c9f8d6b5d-2xk4z"}',
        1800,
        () => 0,
      ),
    ],
    atSeconds: 1200,
  },
  {
    alert: 'TokenSidecarGatewayDown',
    when: 'a replica is replaced',
    input: [
      atGateway('gateway_callers', 1800, (at) => (at < 600 ? 3 : 'stale')),
      series('token_sidecar_gateway_callers{namespace="edge", pod="gateway-2"}', 1800, () => 0),
    ],
    atSeconds: 1800,
  },
  ...(
    [
      ['it never came up', [], 600],
      [
        'it never came up, but one whose name begins alike did',
        [gatewayPod('edge-gateway-b-gateway-2xk4z')],
        600,
      ],
      ['it has been down for a day, and another one is up', [gatewayPod('new-gateway-2xk4z')], 86_400],
    ] as const
  ).map(
    ([what, input, atSeconds]): AlertCase => ({
      alert: 'TokenSidecarGatewayDown',
      when: `the chart has installed a gateway, and ${what}`,
      ofChart: 'gateway',
      input: [...input],
      atSeconds,
      fires: {
        labels: { namespace: 'edge', gateway: 'edge-gateway' },
        description:
          'None of the replicas of the gateway edge-gateway in namespace edge answers: callers reach none of its routes.',
      },
    }),
  ),
  ...(
    [
      ['a replica', 'edge-gateway-7c9f8d6b5d-2xk4z'],
      ['a replica on a node', 'edge-gateway-2xk4z'],
      ['a replica whose long name Kubernetes has cut', 'edge-gateway-7c9f8d6b52xk4z'],
    ] as const
  ).map(
    ([who, pod]): AlertCase => ({
      alert: 'TokenSidecarGatewayDown',
      when: `the chart has installed a gateway, and ${who} is up`,
      ofChart: 'gateway',
      input: [gatewayPod(pod)],
      atSeconds: 1200,
    }),
  ),
  ...(
    [
      ['a certificate of 90 days was not renewed', 90 * 86_400, 7 * 86_400 + 1800, true],
      ['a certificate of a day is renewed with eight hours left', 86_400, 8 * 3600, false],
      ['a certificate of a day was not renewed', 86_400, 5 * 3600, true],
    ] as const
  ).map(
    ([when, lifetime, end, isLate]): AlertCase => ({
      alert: 'TokenSidecarGatewayCertificateExpiring',
      when,
      input: [
        atGateway('gateway_certificate_expiry_timestamp_seconds', 7200, () => end),
        atGateway('gateway_certificate_not_before_timestamp_seconds', 7200, () => end - lifetime),
      ],
      atSeconds: 6000,
      ...(isLate
        ? {
            fires: {
              labels: { namespace: 'edge', pod: 'gateway-1' },
              description: `The certificate that edge/gateway-1 serves ends in ${end > 86_400 ? '6d 22h 50m 0s' : '3h 20m 0s'} and has not been renewed. Once it has ended no caller takes the gateway for what it is.`,
            },
          }
        : {}),
    }),
  ),
  {
    alert: 'TokenSidecarNamespaceWithoutTokens',
    when: 'a gateway has no token, and is no sidecar',
    input: [
      atGateway('token_ready', 1200, () => 0, 'credential="default"'),
      atGateway('gateway_callers', 1200, () => 0),
    ],
    atSeconds: 1200,
  },
  {
    alert: 'TokenSidecarTokenUnavailable',
    when: 'a gateway has no token',
    input: [
      atGateway('token_ready', 1200, () => 0, 'credential="default"'),
      atGateway('gateway_callers', 1200, () => 0),
    ],
    atSeconds: 600,
    fires: {
      labels: {
        job: 'gateways',
        instance: '10.0.0.7:15081',
        namespace: 'edge',
        pod: 'gateway-1',
        credential: 'default',
      },
      description:
        'edge/gateway-1 holds no valid token for credential default. Requests on its routes are answered 503 token_unavailable.',
    },
  },
  {
    alert: 'TokenSidecarAbsent',
    when: 'a gateway was removed from a namespace without sidecars',
    input: [
      atGateway('token_ready', 3600, (at) => (at < 600 ? 1 : 'stale'), 'credential="default"'),
      atGateway('gateway_callers', 3600, (at) => (at < 600 ? 1 : 'stale')),
    ],
    atSeconds: 3600,
  },
  {
    alert: 'TokenSidecarAbsent',
    when: 'the broker closed its only credential, for nobody asks',
    input: [replica(3600), ofReplica('token_ready', 3600, (at) => (at < 600 ? 1 : 'stale'))],
    atSeconds: 3600,
  },
  {
    alert: 'TokenSidecarAbsent',
    when: 'the broker was removed from a namespace of its own',
    input: [replica(3600, 600), ofReplica('token_ready', 3600, (at) => (at < 600 ? 1 : 'stale'))],
    atSeconds: 3600,
  },
  {
    alert: 'TokenSidecarAbsent',
    when: 'a namespace lost its sidecars, and the broker there is well',
    input: [
      replica(3600),
      ofReplica('token_ready', 3600, () => 1),
      series(
        `token_sidecar_token_ready{job="token-sidecar", instance="10.0.0.1:15081", ${CREDENTIAL}}`,
        3600,
        (at) => (at < 600 ? 1 : 'stale'),
      ),
    ],
    atSeconds: 3600,
    fires: {
      labels: { namespace: 'shop' },
      description:
        'Namespace shop had sidecars within the last six hours and has none now: they were removed, are not injected any more, or are not scraped.',
    },
  },
  ...(['gateways', 'token-sidecar'] as const).map(
    (job): AlertCase => ({
      alert: 'TokenSidecarDown',
      when: `a replica of a gateway cannot be scraped any more, found by the job ${job}`,
      input: lostReplica(job),
      atSeconds: 1200,
    }),
  ),
  {
    alert: 'TokenSidecarGatewayReplicaDown',
    when: 'a replica cannot be scraped any more, and another one can',
    input: [
      ...lostReplica('gateways'),
      series('token_sidecar_gateway_callers{namespace="edge", pod="gateway-2"}', 1800, () => 0),
    ],
    atSeconds: 1200,
    fires: {
      labels: { namespace: 'edge', pod: 'gateway-1' },
      description:
        'Prometheus cannot scrape edge/gateway-1, a replica of a gateway, while another one answers. The others do its work, and there is one less to lose.',
    },
  },
  {
    alert: 'TokenSidecarGatewayReplicaDown',
    when: 'none can be scraped, which is told of as a whole',
    input: lostReplica('gateways'),
    atSeconds: 1200,
  },
  {
    alert: 'TokenSidecarGatewayReplicaDown',
    when: 'a sidecar cannot be scraped any more, and there is no gateway',
    input: [
      series(`up{job="token-sidecar", instance="10.0.0.1:15081", ${POD}}`, 1200, (at) => (at < 600 ? 1 : 0)),
      series(
        `token_sidecar_token_ready{job="token-sidecar", instance="10.0.0.1:15081", ${CREDENTIAL}}`,
        1200,
        (at) => (at < 600 ? 1 : 'stale'),
      ),
    ],
    atSeconds: 1200,
  },
  {
    alert: 'TokenSidecarDown',
    when: 'a replica of the broker cannot be scraped any more',
    input: [
      series(`up{${REPLICA}}`, 1200, (at) => (at < 600 ? 1 : 0)),
      replica(1200, 600),
      ofReplica('token_ready', 1200, (at) => (at < 600 ? 1 : 'stale')),
    ],
    atSeconds: 1200,
  },
  {
    alert: 'TokenSidecarDown',
    when: 'a sidecar cannot be scraped whose address a replica of the broker had before, in one job with it',
    input: [
      series(
        `token_sidecar_broker_ready{job="token-sidecar", instance="10.0.0.1:15081", pod="broker-1"}`,
        1200,
        (at) => (at < 300 ? 1 : 'stale'),
      ),
      series(`up{job="token-sidecar", instance="10.0.0.1:15081", ${POD}}`, 1200, (at) => (at < 600 ? 1 : 0)),
    ],
    atSeconds: 1200,
    fires: {
      labels: { job: 'token-sidecar', instance: '10.0.0.1:15081', namespace: 'shop', pod: 'shop-1' },
      description:
        'Prometheus cannot scrape the sidecar of shop/shop-1; it may be crashing, and its app without a proxy.',
    },
  },
  ...[
    { alert: 'TokenSidecarFleetWithoutTokens', sidecars: fleet({}) },
    { alert: 'TokenSidecarNamespaceWithoutTokens', sidecars: fleet({ billing: holding(30) }) },
    { alert: 'TokenSidecarTokenUnavailable', sidecars: fleet({ shop: holding(2) }) },
  ].map(
    ({ alert, sidecars }): AlertCase => ({
      alert,
      when: 'the broker has no token of what a profile names, and no sidecar is without one',
      input: [replica(600), ofReplica('token_ready', 600, () => 0), ...sidecars],
      atSeconds: 600,
    }),
  ),
  {
    alert: 'TokenSidecarTokenExpiring',
    when: 'a token of the broker nears its end and renewals fail',
    input: [
      replica(3600),
      ofReplica('token_expiry_timestamp_seconds', 3600, () => 3600),
      ofReplica('token_renewal_timestamp_seconds', 3600, () => 2700),
      ofReplica('token_refresh_consecutive_failures', 3600, (at) => (at < 2700 ? 0 : 4)),
    ],
    atSeconds: 3330,
  },
  {
    alert: 'TokenSidecarRefreshFailing',
    when: 'grants of the broker fail, with a token or without',
    input: [
      replica(600),
      ofReplica('token_ready', 600, () => 0),
      ofReplica('token_refresh_consecutive_failures', 600, () => 7),
    ],
    atSeconds: 300,
    fires: {
      labels: {
        job: 'token-sidecar-broker',
        instance: '10.0.0.9:15081',
        namespace: 'shop',
        pod: 'broker-1',
        credential: 'payments/orders',
      },
      description:
        'The last 7 grants for credential payments/orders in shop/broker-1 failed. A token that is held is served until it ends.',
    },
  },
  {
    alert: 'TokenSidecarIssuerReloadFailing',
    when: 'changed clients cannot be used',
    input: [
      series(
        'token_sidecar_issuer_reload_total{namespace="sso", pod="issuer-1", source="clients", result="failure"}',
        1800,
        (at) => (at < 600 ? undefined : 1),
      ),
    ],
    atSeconds: 630,
    fires: {
      labels: { namespace: 'sso', pod: 'issuer-1', source: 'clients' },
      description:
        'The clients of the issuer sso/issuer-1 changed into something it cannot use; it goes on with what it had.',
    },
  },
  {
    alert: 'TokenSidecarConfigReloadFailing',
    when: 'two pods do not use what their file says',
    input: ['a', 'b', 'c'].map((pod) =>
      series(`token_sidecar_config_last_reload_successful{namespace="shop", pod="${pod}"}`, 600, () =>
        pod === 'c' ? 1 : 0,
      ),
    ),
    atSeconds: 600,
    fires: {
      labels: { namespace: 'shop' },
      description:
        '2 sidecars or gateways in namespace shop do not use what their configuration file says: it is not valid, takes a restart, or waits for a token. They go on with the one before.',
    },
  },
  {
    alert: 'TokenSidecarConfigReloadFailing',
    when: 'the file was put right within minutes',
    input: [
      series('token_sidecar_config_last_reload_successful{namespace="shop", pod="a"}', 600, (at) =>
        at >= 120 && at < 360 ? 0 : 1,
      ),
    ],
    atSeconds: 600,
  },
  {
    alert: 'TokenSidecarIssuerReloadFailing',
    when: 'the failure is an hour old',
    input: [
      series(
        'token_sidecar_issuer_reload_total{namespace="sso", pod="issuer-1", source="clients", result="failure"}',
        7200,
        () => 1,
      ),
    ],
    atSeconds: 7200,
  },
];
