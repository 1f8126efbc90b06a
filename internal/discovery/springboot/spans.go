package springboot

// span is the versions of Spring Boot that know a property: from (included)
// until (excluded; none: still known).
type span struct{ from, until version }

// spans are the properties that not every version knows.
func spans() map[string]span {
	return map[string]span{
		"server.tomcat.max-threads":       {until: version{2, 5, 0}},
		"server.tomcat.min-spare-threads": {until: version{2, 5, 0}},
		threadsMaxName:                    {from: version{2, 3, 0}},
		threadsMinName:                    {from: version{2, 3, 0}},
		maxQueueName:                      {from: version{3, 3, 0}},
		"server.connection-timeout":       {until: version{2, 3, 0}},
		connTimeoutName:                   {from: version{2, 1, 10}},
		keepAliveName:                     {from: version{2, 5, 0}},
		keepAliveReqName:                  {from: version{2, 5, 0}},
		mbeanName:                         {from: version{2, 2, 0}},
		virtualName:                       {from: version{3, 2, 0}},
		oldRedisName + ".url":             {until: version{3, 0, 0}},
		oldRedisName + ".host":            {until: version{3, 0, 0}},
		oldRedisName + ".port":            {until: version{3, 0, 0}},
		oldRedisName + ".client-type":     {until: version{3, 0, 0}},
		redisName + ".url":                {from: version{3, 0, 0}},
		redisName + ".host":               {from: version{3, 0, 0}},
		redisName + ".port":               {from: version{3, 0, 0}},
		redisName + ".client-type":        {from: version{3, 0, 0}},
	}
}
