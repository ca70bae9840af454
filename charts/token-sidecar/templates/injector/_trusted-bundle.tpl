{{/*
What the API server is to trust, so that no pod is lost while replicas still show a certificate of before. A CA that the webhook
of the cluster does not trust yet is put before those that it trusts. These stay for a quarter of an hour: kubelets bring running
replicas a changed Secret only after a minute or two, for which Helm does not wait. The first upgrade after that leaves them out.
Where somebody else writes the bundle (the injector, cert-manager), it stays as it is. Helm alone sees no cluster, and has its own CA only.
Gives JSON: caBundle, Base64 of PEM; and since, the time for the webhook's annotation, while others are trusted beside the own CA.
Arguments: root, own.
*/}}
{{- define "token-sidecar.injector.trust" -}}
{{- $found := default dict (lookup "admissionregistration.k8s.io/v1" "MutatingWebhookConfiguration" "" (include "token-sidecar.injector.clusterName" .root)) -}}
{{- $live := "" -}}
{{- range $found.webhooks -}}
{{-   if eq .name "inject.token-sidecar.dev" -}}
{{-     $live = default "" .clientConfig.caBundle -}}
{{-   end -}}
{{- end -}}
{{- $own := b64dec .own | trim -}}
{{- $others := b64dec $live | replace $own "" | trim -}}
{{- $layout := "2006-01-02T15:04:05Z07:00" -}}
{{- $since := "" -}}
{{- if contains $own (b64dec $live) -}}
{{-   $since = dig "metadata" "annotations" (include "token-sidecar.injector.trustedSince" .) "" $found -}}
{{- end -}}
{{- $isLong := and $since (ge (sub (now | unixEpoch) (toDate $layout $since | unixEpoch)) 900) -}}
{{- if not .own -}}
{{-   dict "caBundle" $live | toJson -}}
{{- else if or (not $others) $isLong -}}
{{-   dict "caBundle" .own | toJson -}}
{{- else -}}
{{- /* Made anew at every upgrade, CAs would add up: the newest comes first. */ -}}
{{-   if gt (len $others) 8192 -}}
{{-     $others = regexFind "(?s)-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----" $others -}}
{{-   end -}}
{{-   $since = default (dateInZone $layout now "UTC") $since -}}
{{-   dict "caBundle" (printf "%s\n%s\n" $own $others | b64enc) "since" $since | toJson -}}
{{- end -}}
{{- end -}}

{{/* The webhook's annotation that says since when it trusts the own CA beside others. */}}
{{- define "token-sidecar.injector.trustedSince" -}}
token-sidecar.dev/ca-trusted-since
{{- end -}}
