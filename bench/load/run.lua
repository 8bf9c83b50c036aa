-- wrk's part of `make load`: each request runs another number, and an answer must be a 200 that
-- says "status":"ok". LOAD_TOKEN has the token.
local number, wrong = 0, 0
local threads = {}

function setup(thread)
   table.insert(threads, thread)
end

function init()
   wrk.method = "POST"
   wrk.headers["Authorization"] = "Bearer " .. os.getenv("LOAD_TOKEN")
   wrk.headers["Content-Type"] = "application/json"
end

function request()
   number = number + 1
   return wrk.format(nil, nil, nil, '{"code":"print(' .. number .. ')"}')
end

function response(status, headers, body)
   if status ~= 200 or not string.find(body, '"status":"ok"', 1, true) then
      wrong = wrong + 1
   end
   bad = wrong
end

function done(summary, latency, requests)
   local sum = 0
   for _, thread in ipairs(threads) do
      sum = sum + (thread:get("bad") or 0)
   end
   io.write(string.format("wrong answers: %d\n", sum))
end
