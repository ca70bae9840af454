-- wrk's request, by the arguments after `--`: bytes to upload, and whether the connection is kept.
function init(args)
  local upload = tonumber(args[1])
  if upload > 0 then
    wrk.method = "POST"
    wrk.body = string.rep("x", upload)
  end
  if args[2] == "close" then
    wrk.headers["Connection"] = "close"
  end
end

-- The figures as one line of JSON.
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nJSON {"requests":%d,"durationUs":%d,"bytes":%d,"refused":%d,"failed":%d,"p50Us":%.1f,"p99Us":%.1f}\n',
    summary.requests, summary.duration, summary.bytes, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99)))
end
